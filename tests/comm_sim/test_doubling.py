"""Recursive halving and doubling: who talks to whom, who ends with what."""

import numpy as np
import pytest
from comm_sim import (
    all_reduce_doubling,
    all_reduce_rabenseifner,
    allgather_doubling,
    reduce_scatter_halving,
)

from tests.comm_sim.comparing import bits, idle, numbers


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("length", [0, 1, 5, 16, 37])
def test_reduce_scatter_leaves_blocks_in_rank_order(n, length):
    arrays = numbers(n, length)
    pieces = reduce_scatter_halving(idle(n), arrays)
    np.testing.assert_allclose(
        np.concatenate(pieces), np.sum(arrays, axis=0), rtol=1e-12, atol=1e-12
    )
    sizes = [len(piece) for piece in pieces]
    assert max(sizes) - min(sizes) <= 1
    assert not any(np.shares_memory(p, a) for p in pieces for a in arrays)


def test_the_longer_half_is_the_lower_one():
    for length, sizes in ((5, [2, 1, 1, 1]), (6, [2, 1, 2, 1]), (7, [2, 2, 2, 1])):
        pieces = reduce_scatter_halving(idle(4), numbers(4, length))
        assert [len(piece) for piece in pieces] == sizes


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_all_gather_joins_blocks_in_rank_order(n):
    pieces = [np.full(r + 1, r) for r in range(n)]
    full = allgather_doubling(idle(n), pieces)
    assert [bits(f) for f in full] == [bits(np.concatenate(pieces))] * n
    assert not any(np.shares_memory(f, p) for f in full for p in pieces)


def test_partners_are_at_half_and_then_at_double_the_distance():
    comm = idle(8)
    all_reduce_rabenseifner(comm, numbers(8, 16))
    of_rank_5 = [(m.dst, m.bytes) for m in comm.messages if m.src == 5]
    assert of_rank_5 == [(1, 64), (7, 32), (4, 16), (4, 16), (7, 32), (1, 64)]
    comm = idle(8)
    all_reduce_doubling(comm, numbers(8, 16))
    assert [(m.dst, m.bytes) for m in comm.messages if m.src == 5] == [(4, 128), (7, 128), (1, 128)]


@pytest.mark.parametrize("all_reduce", [all_reduce_doubling, all_reduce_rabenseifner])
def test_ranks_beyond_a_power_of_two_send_once_and_are_sent_to_once(all_reduce):
    comm = idle(6)
    all_reduce(comm, numbers(6, 16))
    for even in (0, 2):  # of the first 2·(6 − 4)
        assert comm.sent(even) == comm.received(even) == 128
        ends = [(m.src, m.dst, m.label) for m in comm.messages if even in (m.src, m.dst)]
        assert ends == [
            (even, even + 1, "all-reduce: fold"),
            (even + 1, even, "all-reduce: unfold"),
        ]


@pytest.mark.parametrize("n", [3, 6, 12])
def test_halving_alone_wants_a_power_of_two(n):
    for collective in (reduce_scatter_halving, allgather_doubling):
        comm = idle(n)
        with pytest.raises(ValueError, match=f"{n} ranks are no power of two; the ring"):
            collective(comm, numbers(n, 4))
        assert comm.messages == []
