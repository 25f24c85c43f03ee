"""What every communicator has to do, as a program of ranks: the simulated ones and the real ones.

Each case gets a communicator and asserts something of what its ranks receive. All arrays come from
seeds, so that every process knows those of all ranks, and gives only those of its own.
"""

import hashlib
import warnings

import numpy as np
import pytest

FLOATS = ("float16", "float32", "float64", "complex64", "complex128")
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = FLOATS + WHOLE
LENGTHS = (0, 1, 2, 3, 12, 1001)


def numbers(n, length, dtype="float64", seed=0):
    """For each of n ranks an array; sums of several whole ones leave the range of their dtype."""
    generator = np.random.default_rng(seed)
    if dtype in WHOLE:
        info = np.iinfo(dtype)
        return list(generator.integers(info.min, info.max, (n, length), dtype, endpoint=True))
    values = generator.standard_normal((n, length)).astype(dtype)
    return list(values + values[:, ::-1] * 1j if dtype.startswith("complex") else values)


def held(comm, arrays):
    """Of arrays of all ranks, those that this process gives."""
    return [arrays[rank] for rank in comm.ranks]


def assert_sum(got, arrays, block=slice(None)):
    """The sum, exactly if of whole numbers; else but for the order in which they are added."""
    dtype = arrays[0].dtype
    assert isinstance(got, np.ndarray)
    assert got.dtype == dtype
    if dtype.kind in "iu":
        assert np.array_equal(got, np.sum(arrays, axis=0, dtype=dtype)[block])
    else:
        exact = np.sum([a.astype("complex128") for a in arrays], axis=0)[block]
        size = np.sum([np.abs(a.astype("complex128")) for a in arrays], axis=0)[block]
        bound = len(arrays) * np.finfo(dtype).eps * size
        assert got.shape == exact.shape
        assert (np.abs(got - exact) <= bound).all()


def digest(results):
    """What must be equal at all ranks: a hash of the bytes of arrays."""
    return hashlib.sha256(b"".join(r.dtype.str.encode() + r.tobytes() for r in results)).hexdigest()


# -------------------------------------------------------------------------------------------------
# Each returns, for each rank held, the arrays that all ranks are to have alike
# -------------------------------------------------------------------------------------------------


def all_reduce_gives_every_rank_the_sum(comm):
    alike = [[] for _ in comm.ranks]
    for dtype in DTYPES:
        for length in LENGTHS:
            arrays = numbers(comm.n, length, dtype, seed=length)
            sums = comm.all_reduce(held(comm, arrays), label=f"{dtype} {length}")
            assert len(sums) == len(comm.ranks)
            for seen, total in zip(alike, sums, strict=True):
                assert_sum(total, arrays)
                seen.append(total)
    return alike


def all_reduce_takes_the_names_of_all_algorithms(comm):
    from comm_sim import ALLREDUCE_ALGOS

    arrays = numbers(comm.n, 37)
    for algo in ALLREDUCE_ALGOS:
        for total in comm.all_reduce(held(comm, arrays), algo, f"by {algo}"):
            assert_sum(total, arrays)


def all_gather_joins_arrays_of_all_lengths_in_rank_order(comm):
    alike = [[] for _ in comm.ranks]
    for dtype in (*DTYPES, "bool"):
        for lengths in ((4,) * comm.n, range(comm.n), range(9, 9 - comm.n, -1), (0,) * comm.n):
            arrays = [numbers(1, k, "int8", seed=r)[0] for r, k in enumerate(lengths)]
            arrays = [a.astype(dtype) for a in arrays]
            joined = comm.all_gather(held(comm, arrays), f"{dtype} {lengths}")
            assert len(joined) == len(comm.ranks)
            for seen, full in zip(alike, joined, strict=True):
                assert full.dtype == dtype
                assert np.array_equal(full, np.concatenate(arrays))
                seen.append(full)
    return alike


def reduce_scatter_gives_rank_r_block_r(comm):
    for dtype in DTYPES:
        for size in (0, 1, 5, 64):
            arrays = numbers(comm.n, comm.n * size, dtype, seed=size)
            blocks = comm.reduce_scatter(held(comm, arrays), f"{dtype} {size}")
            for rank, block in zip(comm.ranks, blocks, strict=True):
                assert_sum(block, arrays, slice(rank * size, (rank + 1) * size))


def reduce_scatter_and_all_gather_are_an_all_reduce(comm):
    arrays = numbers(comm.n, 6 * comm.n)
    for total in comm.all_gather(comm.reduce_scatter(held(comm, arrays))):
        assert_sum(total, arrays)


def nothing_given_is_changed_and_nothing_returned_is_shared(comm):
    for method in ("all_reduce", "all_gather", "reduce_scatter"):
        arrays = held(comm, numbers(comm.n, 2 * comm.n))
        before = [a.copy() for a in arrays]
        results = getattr(comm, method)(arrays)
        for result in results:
            assert not any(np.shares_memory(result, a) for a in arrays)
            result[:] = -1  # and it can be written to
        for array, copy in zip(arrays, before, strict=True):
            assert np.array_equal(array, copy)


def arrays_may_be_strided_reversed_read_only_or_lists_of_them_tuples(comm):
    whole = numbers(comm.n, 8 * comm.n)
    expected = [a[::-2] for a in whole]
    given = tuple(held(comm, expected))
    for array in given:
        array.flags.writeable = False
    for total in comm.all_reduce(given):
        assert_sum(total, expected)
    for full in comm.all_gather(given):
        assert np.array_equal(full, np.concatenate(expected))


def even_minus_zero_and_infinity_are_alike(comm):
    arrays = [np.full(9, -0.0) for _ in range(comm.n)]
    for rank, array in enumerate(arrays):
        array[:3] = np.inf if rank % 2 == 0 else -np.inf
        array[3:5] = np.nan
    with np.errstate(invalid="ignore"):
        sums = comm.all_reduce(held(comm, arrays))
    for total in sums:
        assert np.signbit(total[5:]).all()
        assert np.isnan(total[3:5]).all()
        assert (np.isnan(total[:3]) if comm.n > 1 else total[:3] == np.inf).all()
    return [[total[5:]] for total in sums]


def groups_in_any_order_and_with_common_ranks(comm):
    if comm.n < 2:
        return
    whole = numbers(comm.n, 12)
    last = comm.n - 1
    members = [[0, 1], [last, 0], [1, 0], list(range(last, -1, -1)), [last], list(range(1, comm.n))]
    for chosen in members:
        group = comm.group(chosen)
        assert group.n == len(chosen)
        mine = [i for i, rank in enumerate(chosen) if rank in comm.ranks]
        assert group.ranks == tuple(mine)
        theirs = [whole[rank] for rank in chosen]  # of rank i of the group
        for total in group.all_reduce(held(group, theirs)):
            assert_sum(total, theirs)
        uneven = [a[: 3 + i] for i, a in enumerate(theirs)]
        for full in group.all_gather(held(group, uneven)):
            assert np.array_equal(full, np.concatenate(uneven))
        theirs = [np.resize(a, 2 * len(chosen)) for a in theirs]
        blocks = group.reduce_scatter(held(group, theirs))
        for rank, block in zip(group.ranks, blocks, strict=True):
            assert_sum(block, theirs, slice(2 * rank, 2 * rank + 2))


def groups_of_groups(comm):
    if comm.n < 3:
        return
    pair = comm.group([2, 0, 1]).group([2, 0])  # ranks 1 and 2
    mine = [i for i, rank in enumerate((1, 2)) if rank in comm.ranks]
    assert pair.ranks == tuple(mine)
    for full in pair.all_gather([np.array([comm_rank]) for comm_rank in pair.ranks]):
        assert list(full) == [0, 1]


def rows_and_columns_of_a_mesh(comm):
    """Two axes, as of tensor and data parallelism: each rank is in a row and in a column."""
    if comm.n != 4:
        return
    arrays = numbers(4, 6)
    rows = held_by_groups(comm, [[0, 1], [2, 3]], arrays)
    columns = held_by_groups(comm, [[0, 2], [1, 3]], rows)
    for rank in comm.ranks:
        assert_sum(columns[rank], arrays)


def held_by_groups(comm, groups, arrays):
    """All-reduces in each of these groups: sums by rank, of the ranks held."""
    sums = {}
    for ranks in groups:
        group = comm.group(ranks)
        given = [arrays[ranks[i]] for i in group.ranks]
        for i, total in zip(group.ranks, group.all_reduce(given), strict=True):
            sums[ranks[i]] = total
    return sums


def bad_groups_are_refused(comm):
    for ranks, message in (
        ([], "a group has one rank or more, each once"),
        ([0, 0], "a group has one rank or more, each once"),
        ([comm.n], f"there is no rank {comm.n}: ranks are 0 to {comm.n - 1}"),
        ([-1], "there is no rank -1"),
    ):
        with pytest.raises(ValueError, match=message):
            comm.group(ranks)


def what_does_not_fit_is_the_same_error_at_all_ranks_and_is_not_sent(comm):
    before = comm.get_total_counts()
    n, last = comm.n, comm.n - 1

    def refused(method, of_rank, message):
        with pytest.raises(ValueError, match=message):
            getattr(comm, method)([of_rank(rank) for rank in comm.ranks])

    for method in ("all_reduce", "all_gather", "reduce_scatter"):
        refused(
            method,
            lambda r: np.ones(n if r < last else (n, 1)),
            rf"the array of rank {last} has shape \({n}, 1\); give 1-D arrays: x\.ravel\(\)",
        )
        refused(method, lambda r: [1.0] * n, "the array of rank 0 is a list; give a numpy array")
        if n > 1:
            refused(
                method,
                lambda r: np.ones(n, "float32" if r == 0 else "float64"),
                "rank 1 is of float64, the array of rank 0 of float32; dtypes must be equal",
            )
        with pytest.raises(ValueError, match=r"list|arrays are needed"):
            getattr(comm, method)([np.ones(n)] * (len(comm.ranks) + 1))
        with pytest.raises(ValueError, match=r"list|arrays are needed"):
            getattr(comm, method)([])
    for method in ("all_reduce", "reduce_scatter"):
        refused(method, lambda r: np.ones(n, bool), "rank 0 is of bool; sums need numbers")
        if n > 1:
            refused(
                method,
                lambda r: np.ones(n if r < last else 2 * n),
                rf"rank {last} has {2 * n} elements, that of rank 0 {n}; lengths must be equal",
            )
    if n > 1:
        refused(
            "reduce_scatter",
            lambda r: np.ones(2 * n + 1),
            f"{2 * n + 1} elements cannot be cut into {n} equal blocks; pad them to {3 * n}",
        )
    assert comm.get_total_counts() == before
    (total,) = {float(t[0]) for t in comm.all_reduce([np.ones(1) for _ in comm.ranks])}
    assert total == n  # and all goes on


def calls_are_counted_by_the_names_of_torch(comm):
    comm.reset()
    arrays = held(comm, numbers(comm.n, comm.n))
    for _ in range(3):
        comm.all_reduce(arrays)
    comm.all_gather(arrays[: len(comm.ranks)], "logits")
    comm.reduce_scatter(arrays)
    assert comm.get_comm_counts() == {
        "all_reduce": 3,
        "all_gather_into_tensor": 1,
        "reduce_scatter_tensor": 1,
    }
    assert comm.get_total_counts() == 5
    assert [call.label for call in comm.calls] == [
        *["all-reduce"] * 3,
        "logits",
        "reduce-scatter",
    ]


CASES = {
    case.__name__: case
    for case in (
        all_reduce_gives_every_rank_the_sum,
        all_reduce_takes_the_names_of_all_algorithms,
        all_gather_joins_arrays_of_all_lengths_in_rank_order,
        reduce_scatter_gives_rank_r_block_r,
        reduce_scatter_and_all_gather_are_an_all_reduce,
        nothing_given_is_changed_and_nothing_returned_is_shared,
        arrays_may_be_strided_reversed_read_only_or_lists_of_them_tuples,
        even_minus_zero_and_infinity_are_alike,
        groups_in_any_order_and_with_common_ranks,
        groups_of_groups,
        rows_and_columns_of_a_mesh,
        bad_groups_are_refused,
        what_does_not_fit_is_the_same_error_at_all_ranks_and_is_not_sent,
        calls_are_counted_by_the_names_of_torch,
    )
}


def check(comm, names=tuple(CASES)):
    """Runs cases; hashes, by case and rank held, of what all ranks are to have alike."""
    warnings.simplefilter("error")
    hashes = {}
    for name in names:
        try:
            alike = CASES[name](comm)
        except Exception as error:
            error.add_note(f"in case {name} with {comm!r}")
            raise
        hashes[name] = [digest(results) for results in alike or ()]
    return hashes
