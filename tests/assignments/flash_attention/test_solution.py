"""The reference solution: full marks whatever the seed, and bytes that equal every budget."""

import pytest

from grader.authoring import golden
from grader.testing.evidence import TrafficRow
from tests.assignments.flash_attention.in_process import ASSIGNMENT, HOUSE, grade

SOLUTION = HOUSE / "solutions/flash_attention"


@pytest.mark.parametrize("seed", [1, 2])
def test_passes_everything(seed):
    """`make check` judges it on the assignment's own seed."""
    results = grade(SOLUTION, seed=seed)
    assert [result for result in results if not result.passed] == []
    counted = [row for result in results for row in result.evidence if isinstance(row, TrafficRow)]
    assert counted
    assert [row for row in counted if row.bytes != row.budget] == []


def test_every_budget_is_in_the_golden_table():
    """Which tests count bytes: one public and one hidden test of each kernel task."""
    table = golden.read(ASSIGNMENT.name)
    assert set(table) == {"9.6", "9.9", "10.6", "10.9", "11.4", "11.6"}
    for rows in table.values():
        for row in rows:
            assert row["budget"].endswith(f"= {row['bytes']:,} B")
