"""Collectives as methods: those of the functions, but for who has which block."""

import numpy as np
import pytest
from comm_sim import ALLREDUCE_ALGOS, allgather_ring, reduce_scatter_ring

from tests.comm_sim.comparing import bits, idle, numbers


def log(comm):
    return comm.time, comm.messages, comm.calls


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_one_process_holds_all_ranks(n):
    comm = idle(n)
    assert comm.ranks == tuple(range(n))
    assert comm.group(range(n - 1, n // 2 - 1, -1)).ranks == tuple(range(n - n // 2))


@pytest.mark.parametrize("algo", ALLREDUCE_ALGOS)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_all_reduce_is_the_algorithm_of_that_name(algo, n):
    arrays = numbers(n, 13)
    method, function = idle(n), idle(n)
    sums = method.all_reduce(arrays, algo, "wo")
    expected = ALLREDUCE_ALGOS[algo][1](function, arrays, label="wo")
    assert [bits(s) for s in sums] == [bits(e) for e in expected]
    assert log(method) == log(function)


def test_all_reduce_is_a_ring_unless_told_otherwise():
    method, function = idle(4), idle(4)
    method.all_reduce(numbers(4, 8))
    ALLREDUCE_ALGOS["ring"][1](function, numbers(4, 8))
    assert log(method) == log(function)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_gather_joins_arrays_of_any_length_in_rank_order(n):
    arrays = [np.full(3 * r % 4, r, np.float32) for r in range(n)]
    method, function = idle(n), idle(n)
    full = method.all_gather(arrays, "logits")
    assert [bits(f) for f in full] == [bits(np.concatenate(arrays))] * n
    allgather_ring(function, arrays, range(n), "logits")
    assert log(method) == log(function)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_reduce_scatter_leaves_block_r_at_rank_r_at_the_price_of_the_ring(n, size, dtype):
    arrays = numbers(n, n * size, dtype)
    before = [bits(a) for a in arrays]
    method, function = idle(n), idle(n)
    blocks = method.reduce_scatter(arrays, "norm")
    expected = np.split(np.sum(arrays, axis=0, dtype=dtype), n)
    for block, want in zip(blocks, expected, strict=True):
        assert block.dtype == dtype
        np.testing.assert_allclose(block, want, rtol=1e-5, atol=1e-3 if dtype == "float32" else 0)
    reduce_scatter_ring(function, arrays, "norm")
    assert log(method) == log(function)
    assert [bits(a) for a in arrays] == before
    assert not any(np.shares_memory(b, a) for b in blocks for a in arrays)


def test_in_a_group_blocks_go_by_the_ranks_of_the_group():
    comm = idle(5)
    blocks = comm.group([4, 0, 2]).reduce_scatter([np.arange(6)] * 3)
    assert [list(block) for block in blocks] == [[0, 3], [6, 9], [12, 15]]
    assert [comm.sent(r) > 0 for r in range(5)] == [True, False, True, False, True]
    assert comm.calls[0].devices == (4, 0, 2)


@pytest.mark.parametrize(
    ("method", "arrays", "message"),
    [
        ("all_reduce", [np.ones(3)], "2 arrays are needed, one for each rank; there are 1"),
        ("all_reduce", [np.ones(3), np.ones(4)], "rank 1 has 4 elements, that of rank 0 3"),
        ("all_gather", [np.ones(3), np.ones(3, int)], "rank 1 is of int64, .* float64; dtypes"),
        ("all_gather", [np.ones(3), np.ones((3, 1))], r"rank 1 has shape \(3, 1\); give 1-D"),
        ("reduce_scatter", [np.ones(3), np.ones(4)], "rank 1 has 4 elements, that of rank 0 3"),
        ("reduce_scatter", [], "2 arrays are needed, one for each rank; there are 0"),
        (
            "reduce_scatter",
            [np.ones(5), np.ones(5)],
            "arrays of 5 elements cannot be cut into 2 equal blocks; pad them to 6",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(method, arrays, message):
    comm = idle(2)
    with pytest.raises(ValueError, match=message):
        getattr(comm, method)(arrays)
    assert log(comm) == (0, [], [])


def test_an_algorithm_that_does_not_exist_is_refused_with_those_that_do():
    comm = idle(2)
    with pytest.raises(ValueError, match=r"no algorithm 'nccl'; there are \['ring', 'rd',"):
        comm.all_reduce(numbers(2, 4), "nccl")
    assert log(comm) == (0, [], [])
