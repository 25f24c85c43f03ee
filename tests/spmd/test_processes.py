"""`run`: results in rank order, one thread each, and who failed."""

import threading

import numpy as np
import pytest
import torch
from spmd import RankError, run

from tests.spmd import programs


def test_results_are_in_rank_order_and_runs_at_once_do_not_meet():
    """Two runs at the same time: each finds its own ranks."""
    results = {}

    def start(value):
        results[value] = run(programs.threads, 2, np.full(3, value), backend="gloo", timeout=100)

    others = [threading.Thread(target=start, args=(value,)) for value in (1.0, 5.0)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    for value in (1.0, 5.0):
        assert [result[:3] for result in results[value]] == [(0, 1, "1"), (1, 1, "1")]
        assert all(np.array_equal(result[3], np.full(3, value)) for result in results[value])


@pytest.mark.parametrize(
    ("program", "args", "rank", "message"),
    [
        (programs.fails, (1,), 1, r"rank 1 of 2 failed: KeyError: 'shard of rank 1'"),
        (programs.computes_on, (0,), 0, r"rank 0 of 2 failed: ArithmeticError: no more"),
        (programs.dies, (1,), 1, r"rank 1 of 2 died with signal SIGKILL"),
    ],
)
def test_a_rank_that_fails_is_named_and_the_others_are_ended(program, args, rank, message):
    with pytest.raises(RankError, match=message) as caught:
        run(program, 2, *args, backend="gloo", timeout=100)
    assert caught.value.rank == rank
    assert ("programs.py" in str(caught.value)) == (program is not programs.dies)  # the traceback
    assert "processes.py" not in str(caught.value)


def test_a_rank_that_does_not_come_is_named():
    """Not the ones that wait for it, whose backend has nothing but its own words for that."""
    with pytest.raises(RankError) as caught:
        run(programs.stays_away, 2, 1, backend="gloo", timeout=8)
    words, _, details = str(caught.value).partition("\n\n")
    assert words == (
        "rank 1 of 2 did not come to all_reduce, where rank 0 has waited for it for 8 s\n"
        "(in the third layer)"
    )
    assert "programs.py" in details
    assert caught.value.rank == 1


@pytest.mark.parametrize(
    ("program", "n", "message"),
    [
        (
            programs.forgets,
            2,
            r"rank 0 has come to its end, rank 1 calls all_reduce \('after the MLP'\); all ranks",
        ),
        (
            programs.divides,
            3,
            r"rank 0 calls all_gather_into_tensor \('x'\), rank 1 makes a group of \[1, 2\]; all",
        ),
        (
            programs.confuses,
            2,
            r"rank 0 calls all_reduce \('wo'\), rank 1 calls reduce_scatter_tensor \('norm'\)",
        ),
    ],
)
def test_ranks_that_call_different_collectives_are_told(program, n, message):
    with pytest.raises(RankError, match=message):
        run(program, n, backend="gloo", timeout=100)


@pytest.mark.parametrize(
    ("n", "backend", "message"),
    [
        (0, None, "n is 0; there is one rank or more"),
        (2, "mpi", r"no backend 'mpi'; there are \['gloo', 'nccl'\]"),
        (
            torch.cuda.device_count() + 1,
            "nccl",
            r"nccl needs a GPU for each of \d+ ranks; this machine has \d+",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(n, backend, message):
    with pytest.raises(ValueError, match=message):
        run(programs.confuses, n, backend=backend)
