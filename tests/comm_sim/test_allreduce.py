"""Every all-reduce: the sum, bitwise equal at all ranks, for any number of ranks and any length."""

import time

import numpy as np
import pytest
from comm_sim import ALLREDUCE_ALGOS, NVLINK4, Comm, hierarchical, ring, switch, torus
from hypothesis import given
from hypothesis import strategies as st

from tests.comm_sim.comparing import LINK, SLOW, bits, idle, numbers

ALGORITHMS = sorted(ALLREDUCE_ALGOS)


def all_reduce(algo, comm, arrays):
    return ALLREDUCE_ALGOS[algo][1](comm, arrays)


def test_keys_and_titles():
    assert list(ALLREDUCE_ALGOS) == ["ring", "rd", "rab", "tree", "innet", "hier"]
    titles = [title for title, _ in ALLREDUCE_ALGOS.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("n", range(1, 17))
def test_all_ranks_have_the_sum_and_its_bits(algo, n):
    for length in (0, 1, n - 1, n, 3 * n, 61):
        arrays = numbers(n, length, seed=n)
        given_bits = [bits(a) for a in arrays]
        sums = all_reduce(algo, idle(n), arrays)
        assert len(sums) == n
        np.testing.assert_allclose(sums[0], np.sum(arrays, axis=0), rtol=1e-12, atol=1e-10)
        assert {bits(s) for s in sums} == {bits(sums[0])}
        assert sums[0].shape == (length,)
        assert [bits(a) for a in arrays] == given_bits  # what was given is as it was


@given(st.sampled_from(ALGORITHMS), st.integers(1, 16), st.integers(0, 100), st.integers(0, 2**30))
def test_whole_numbers_are_summed_exactly_and_wrap_round_alike(algo, n, length, seed):
    arrays = list(np.random.default_rng(seed).integers(-(2**62), 2**62, (n, length)))
    sums = all_reduce(algo, idle(n), arrays)
    for got in sums:
        assert np.array_equal(got, np.sum(arrays, axis=0))


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "uint8"])
def test_dtypes_stay(algo, dtype):
    arrays = [np.arange(7, dtype=dtype) for _ in range(5)]
    for got in all_reduce(algo, idle(5), arrays):
        assert got.dtype == dtype
        assert np.array_equal(got, 5 * np.arange(7))


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("n", [2, 5, 8])
def test_even_the_bits_of_not_a_number_and_of_minus_zero_are_equal(algo, n):
    """Which of two NaNs a sum keeps depends on the order of its operands."""
    arrays = []
    for rank in range(n):
        array = np.full(33, -0.0)
        array[::2] = np.uint64(0x7FF8000000000000 + rank).view(np.float64)
        array[::3] = np.inf if rank % 2 else -np.inf
        arrays.append(array)
    with np.errstate(invalid="ignore"):
        sums = all_reduce(algo, idle(n), arrays)
    assert {bits(s) for s in sums} == {bits(sums[0])}
    assert np.signbit(sums[0][1])


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_ranks_share_no_memory(algo, n):
    arrays = numbers(n, 12)
    expected = sum(arrays)
    sums = all_reduce(algo, idle(n), arrays)
    for rank, own in enumerate(sums):
        own[:] = rank
        arrays[rank][:] = -1
    assert all((own == rank).all() for rank, own in enumerate(sums))
    assert not np.array_equal(expected, sums[0])


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_one_rank_sends_nothing(algo):
    comm = idle(1)
    array = np.arange(5.0)
    (got,) = all_reduce(algo, comm, [array])
    assert np.array_equal(got, array)
    assert comm.messages == []
    assert comm.time == 0


@pytest.mark.parametrize("algo", [a for a in ALGORITHMS if a != "innet"])
@pytest.mark.parametrize(
    "topology",
    [ring(6, LINK), torus((2, 3), LINK), torus((2, 3, 2), LINK), hierarchical(3, 2, LINK, SLOW, 1)],
    ids=str,
)
def test_every_topology_will_do(algo, topology):
    arrays = numbers(topology.n, 17)
    sums = all_reduce(algo, Comm(topology), arrays)
    np.testing.assert_allclose(sums[-1], np.sum(arrays, axis=0), rtol=1e-12, atol=1e-10)
    assert {bits(s) for s in sums} == {bits(sums[0])}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_group_in_any_order(algo):
    comm = idle(8)
    arrays = numbers(5, 17)
    sums = all_reduce(algo, comm.group([6, 1, 0, 7, 3]), arrays)
    np.testing.assert_allclose(sums[2], np.sum(arrays, axis=0), rtol=1e-12, atol=1e-10)
    assert [comm.sent(r) > 0 for r in range(8)] == [r in (6, 1, 0, 7, 3) for r in range(8)]


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.ones(3)] * 3, "4 arrays are needed, one for each rank; there are 3"),
        ([np.ones(3)] * 3 + [np.ones((3, 1))], r"rank 3 has shape \(3, 1\); give 1-D arrays"),
        ([np.ones(3)] * 3 + [[1.0] * 3], "the array of rank 3 is a list; give a numpy array"),
        ([np.ones(3), np.ones(2)] * 2, "rank 1 has 2 elements, that of rank 0 3; lengths must"),
        ([np.ones(3, np.float32)] + [np.ones(3)] * 3, "rank 1 is of float64, .* of float32; dty"),
        ([np.ones(3, bool)] * 4, "the array of rank 0 is of bool; sums need numbers"),
        ([np.array(["a"])] * 4, "sums need numbers"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(algo, arrays, message):
    comm = idle(4)
    with pytest.raises(ValueError, match=message):
        all_reduce(algo, comm, arrays)
    assert comm.messages == []
    assert comm.calls == []


@pytest.mark.parametrize("algo", ["ring", "rd"])  # the most messages, and the most bytes
def test_a_million_numbers_at_sixteen_ranks_take_well_under_a_second(algo):
    arrays = [np.full(1_000_000, float(rank)) for rank in range(16)]
    begun = time.process_time()  # other processes are at work as well
    all_reduce(algo, Comm(switch(16, NVLINK4)), arrays)
    assert time.process_time() - begun < 1.0
