"""Launches that are alike."""

from mini_triton.groups import grouped
from mini_triton.launch import LaunchRecord
from mini_triton.location import Location


def record(kernel, grid, loaded):
    found = LaunchRecord(kernel, grid)
    found.add("x", Location("k.py", 1), "loaded", loaded, 4)
    return found


def test_alike_launches_are_one_group():
    a, b = record("a", (2, 1, 1), 8), record("b", (2, 3, 1), 8)
    groups = grouped([a, b, record("a", (2, 1, 1), 8), record("a", (2, 1, 1), 9)])
    assert [(g.number, g.launch, g.times) for g in groups[:2]] == [(1, a, 2), (2, b, 1)]
    assert len(groups) == 3
    assert [g.label for g in groups] == ["a [2]", "b [2, 3]", "a [2]"]
