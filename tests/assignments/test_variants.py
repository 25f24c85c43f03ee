"""The variants: enough of them, of every file and every task.

How each is judged is proved by `make check`, which grades them all; here, that an error is found in
one process, too, as students run the tests.
"""

import pytest

from grader.authoring import overlay
from grader.manifest import Assignment
from tests.assignments.in_process import ASSIGNMENTS, grade, of_each

VARIANTS = {name: overlay.variants(assignment) for name, assignment in ASSIGNMENTS.items()}


@of_each
def test_there_are_enough(assignment):
    wrong = [variant for variant in VARIANTS[assignment.name] if not variant.right]
    assert len(wrong) >= max(14, 2 * len(assignment.tasks))
    assert len(VARIANTS[assignment.name]) - len(wrong) >= 7


@of_each
def test_every_file_has_right_and_wrong_ones(assignment):
    found = {
        (overlay.apply(assignment, variant)[0], variant.right)
        for variant in VARIANTS[assignment.name]
    }
    assert found == {(file, right) for file in assignment.files for right in (True, False)}


@pytest.mark.parametrize(
    ("assignment", "task"),
    [(assignment, task) for assignment in ASSIGNMENTS.values() for task in assignment.task_ids],
    ids=lambda value: value.name if isinstance(value, Assignment) else f"task {value}",
)
def test_one_that_breaks_the_task_loses_points(assignment, task, tmp_path):
    """A variant for each task, and of the task no more tests than it takes."""
    variant = next(one for one in VARIANTS[assignment.name] if task in one.breaks)
    overlay.write(assignment, variant, tmp_path)
    numbers = [test.number for test in assignment.tests() if assignment.task_of(test).id == task]
    assert any(not grade(assignment, tmp_path, numbers=[number])[0].passed for number in numbers)
