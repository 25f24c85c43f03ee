"""The reference solution: full marks whatever the seed, and bytes that equal every budget."""

import pytest

from grader import house
from grader.authoring import golden
from grader.testing.evidence import TrafficRow
from tests.assignments.in_process import grade, of_each

#: Calls whose budget leaves a choice, of which the solution's is not the dearest.
WITH_ROOM = ("RMSNorm.apply",)


@of_each
@pytest.mark.parametrize("seed", [1, 2])
def test_passes_everything(assignment, seed):
    """`make check` judges it on the assignment's own seed."""
    results = grade(assignment, house.solution(assignment.name), seed=seed)
    assert [result for result in results if not result.passed] == []
    rows = {
        result.number: [row for row in result.evidence if isinstance(row, TrafficRow)]
        for result in results
    }
    assert {number for number in rows if rows[number]} == set(golden.read(assignment.name))
    counted = [row for found in rows.values() for row in found if row.name not in WITH_ROOM]
    assert [row for row in counted if row.bytes != row.budget] == []
