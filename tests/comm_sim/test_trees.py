"""Reduce and broadcast: from and to any root."""

import numpy as np
import pytest
from comm_sim import broadcast_pipelined, broadcast_tree, reduce_tree

from tests.comm_sim.comparing import LINK, bits, idle, numbers, same

EVERY_ROOT = [(n, root) for n in (1, 2, 3, 5, 8) for root in range(n)]


@pytest.mark.parametrize(("n", "root"), EVERY_ROOT)
def test_reduce(n, root):
    comm = idle(n)
    arrays = numbers(n, 7)
    before = [bits(a) for a in arrays]
    total = reduce_tree(comm, arrays, root)
    np.testing.assert_allclose(total, np.sum(arrays, axis=0), rtol=1e-12)
    assert [bits(a) for a in arrays] == before
    assert not any(np.shares_memory(total, a) for a in arrays)
    assert [comm.sent(r) for r in range(n)] == [0 if r == root else 56 for r in range(n)]
    assert comm.get_comm_counts() == {"reduce": 1}


@pytest.mark.parametrize(("n", "root"), EVERY_ROOT)
@pytest.mark.parametrize("chunks", [None, 1, 3, 10])
def test_broadcast(n, root, chunks):
    comm = idle(n)
    (array,) = numbers(1, 7)
    if chunks is None:
        copies = broadcast_tree(comm, array, root)
    else:
        copies = broadcast_pipelined(comm, array, chunks, root)
    assert [bits(c) for c in copies] == [bits(array)] * n
    assert not any(np.shares_memory(c, d) for c in copies for d in [array, *copies] if c is not d)
    assert [comm.received(r) for r in range(n)] == [0 if r == root else 56 for r in range(n)]
    assert comm.get_comm_counts() == {"broadcast": 1}


def test_in_a_tree_all_that_have_it_pass_it_on():
    comm = idle(8)
    broadcast_tree(comm, np.ones(10), root=3)
    rounds = [
        [(m.src, m.dst) for m in comm.messages if same(m.start, k * LINK.time(80))]
        for k in (0, 1, 2)
    ]
    assert [sorted(r) for r in rounds] == [
        [(3, 7)],
        [(3, 5), (7, 1)],
        [(1, 2), (3, 4), (5, 6), (7, 0)],
    ]


def test_a_chain_is_full_once_it_runs():
    comm = idle(4)
    broadcast_pipelined(comm, np.ones(12), chunks=6, root=2)
    assert {(m.src, m.dst) for m in comm.messages} == {(2, 3), (3, 0), (0, 1)}
    third = [m for m in comm.messages if same(m.start, 2 * LINK.time(16))]
    assert sorted((m.src, m.dst) for m in third) == [(0, 1), (2, 3), (3, 0)]


def test_roots_and_chunks_that_are_none_are_refused():
    comm = idle(4)
    for root in (4, -1, None):
        for call in (
            lambda root=root: reduce_tree(comm, numbers(4, 2), root),
            lambda root=root: broadcast_tree(comm, np.ones(2), root),
            lambda root=root: broadcast_pipelined(comm, np.ones(2), 1, root),
        ):
            with pytest.raises(ValueError, match=r"the root is rank .*: ranks are 0 to 3"):
                call()
    with pytest.raises(ValueError, match="chunks is 0"):
        broadcast_pipelined(comm, np.ones(2), 0)
    with pytest.raises(ValueError, match=r"the root's array has shape \(2, 2\)"):
        broadcast_tree(comm, np.ones((2, 2)))
    assert comm.messages == []
