"""Which programs run which trips of a loop together."""

import pytest
import torch
from mini_triton.execute.tiles.affine import Affine, constant
from mini_triton.execute.trips import scheduled

TWO = constant(2, torch.int32)


def numbers(*values):
    return Affine(torch.int32, torch.tensor(values), min(values), max(values))


def stages_of(schedule):
    return [(stage.trips, stage.running.tolist()) for stage in schedule.stages()]


def test_shorter_loops_end_sooner():
    schedule = scheduled(
        constant(3, torch.int32), constant(2, torch.int32), torch.tensor([2, 5, 3, 2])
    )
    assert schedule.begins is None
    assert schedule.first.uniform == 3
    assert stages_of(schedule) == [
        (range(2), [0, 1, 2, 3]),
        (range(2, 3), [1, 2]),
        (range(3, 5), [1]),
    ]


def test_loops_that_end_at_one_place_are_aligned_there():
    schedule = scheduled(numbers(0, 6, 4, 6), constant(2, torch.int32), torch.tensor([5, 2, 3, 2]))
    assert schedule.first.uniform == 0
    assert schedule.begins.base.tolist() == [0, 3, 2, 3]
    assert stages_of(schedule) == [
        (range(2), [0]),
        (range(2, 3), [0, 2]),
        (range(3, 5), [0, 1, 2, 3]),
    ]


@pytest.mark.parametrize(
    ("lower", "step"), [(numbers(0, 5), 2), (numbers(0, 1), 2), (numbers(0, 4), numbers(2, 3))]
)
def test_other_loops_begin_together(lower, step):
    step = constant(step, torch.int32) if isinstance(step, int) else step
    schedule = scheduled(lower, step, torch.tensor([5, 3]))
    assert schedule.begins is None
    assert schedule.first is lower


def test_every_program_runs_all_of_its_trips_once():
    counts = torch.tensor([1, 9, 4, 4, 2, 9, 1])
    lower = (9 - counts) * 3 + 5
    for first in (constant(1, torch.int32), numbers(*lower.tolist())):
        schedule = scheduled(first, constant(3, torch.int32), counts)
        ran = torch.zeros(7, dtype=torch.int64)
        for stage in schedule.stages():
            ran[stage.running] += len(stage.trips)
        assert ran.equal(counts)


def test_equal_loops_are_one_stage():
    schedule = scheduled(numbers(0, 6), constant(2, torch.int32), 4)
    assert (schedule.counts, schedule.most, schedule.begins) == (4, 4, None)
