"""Ring reduce-scatter and all-gather: who has which block, and what is sent."""

import numpy as np
import pytest
from comm_sim import allgather_ring, reduce_scatter_ring

from tests.comm_sim.comparing import bits, idle, numbers


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("length", [0, 1, 5, 8, 24, 29])
def test_reduce_scatter_leaves_rank_r_block_r_plus_one(n, length):
    arrays = numbers(n, length)
    before = [bits(a) for a in arrays]
    pieces, owner = reduce_scatter_ring(idle(n), arrays)
    assert owner == [(r + 1) % n for r in range(n)]
    expected = np.array_split(np.sum(arrays, axis=0), n)  # longer blocks first
    for piece, block in zip(pieces, owner, strict=True):
        np.testing.assert_allclose(piece, expected[block], rtol=1e-12, atol=1e-12)
    assert [bits(a) for a in arrays] == before
    assert not any(np.shares_memory(p, a) for p in pieces for a in arrays)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_all_gather_joins_blocks_in_the_order_of_their_numbers(n):
    flat = [np.full(r + 2, r) for r in range(n)]  # of different lengths
    number = {r: (3 * r + 1) % n for r in range(n)}
    holder = {block: r for r, block in number.items()}
    expected = np.concatenate([flat[holder[block]] for block in range(n)])
    for blocks in (number, [number[r] for r in range(n)]):
        full = allgather_ring(idle(n), flat, blocks, label="logits")
        assert [bits(f) for f in full] == [bits(expected)] * n
        assert not any(np.shares_memory(f, g) for f in full for g in [*flat, *full] if f is not g)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_every_step_goes_to_the_next_rank_and_every_rank_sends_all_blocks_but_one(n):
    comm = idle(n)
    reduce_scatter_ring(comm, numbers(n, 6 * n))
    steps = sorted((m.src, m.dst, m.bytes) for m in comm.messages)
    assert steps == sorted([(r, (r + 1) % n, 48.0) for r in range(n)] * (n - 1))
    allgather_ring(comm, numbers(n, 6), range(n))
    assert sorted((m.src, m.dst, m.bytes) for m in comm.messages) == sorted(steps * 2)
    assert {m.label for m in comm.messages} == {"reduce-scatter", "all-gather"}


def test_labels_and_calls_are_those_of_the_caller():
    comm = idle(2)
    reduce_scatter_ring(comm, numbers(2, 4), label="x")
    allgather_ring(comm, numbers(2, 4), {0: 1, 1: 0}, label="y")
    assert [(c.op, c.label) for c in comm.calls] == [
        ("reduce_scatter_tensor", "x"),
        ("all_gather_into_tensor", "y"),
    ]
    assert [m.label for m in comm.messages] == ["x"] * 2 + ["y"] * 2


@pytest.mark.parametrize(
    "blocks", [{0: 0, 1: 1}, {0: 0, 1: 1, 2: 1}, [0, 1, 3], {1: 0, 2: 1, 3: 2}]
)
def test_blocks_are_each_at_one_rank(blocks):
    comm = idle(3)
    with pytest.raises(ValueError, match="each of 3 ranks holds another of 3 blocks"):
        allgather_ring(comm, numbers(3, 2), blocks)
    assert comm.messages == []
