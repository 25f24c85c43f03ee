"""One truth about points: the manifest and the handout's tables agree.

That the manifest and the tests' decorators do is proved by `make check`.
"""

import re

import pytest

from grader import house
from grader.judge.child import load_case, title_of
from grader.manifest import Assignment, Task, Test
from tests.assignments.in_process import ASSIGNMENTS, of_each

of_each_task = pytest.mark.parametrize(
    ("assignment", "task"),
    [(assignment, task) for assignment in ASSIGNMENTS.values() for task in assignment.tasks],
    ids=lambda value: value.name if isinstance(value, Assignment) else f"task {value.id}",
)


def title(assignment: Assignment, test: Test) -> str:
    """The line that students see of a test."""
    return title_of(load_case(assignment.test_path(test), test, house.here().root))


def points(tests: list[Test]) -> float:
    return sum(test.points for test in tests)


def public(task: Task) -> list[Test]:
    return [test for test in task.tests if not test.hidden]


def hidden(task: Task) -> list[Test]:
    return [test for test in task.tests if test.hidden]


def handout(assignment: Assignment) -> str:
    path = house.assignment(assignment.name) / "README.md"
    return path.read_text(encoding="utf-8")


def rows_of(assignment: Assignment) -> list[list[str]]:
    """The cells of every row of every table of the handout."""
    lines = [line for line in handout(assignment).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def row_of_task(assignment: Assignment, task: Task) -> list[str]:
    """Of the handout's first table: the task, its file if there are several, functions, points."""
    return next(row for row in rows_of(assignment) if row[0] == task.id and "`" in "".join(row))


@of_each
def test_a_hundred_points(assignment):
    assert assignment.total_points == 100


@of_each
def test_two_thirds_of_the_points_are_public(assignment):
    assert 60 <= sum(points(public(task)) for task in assignment.tasks) <= 72


@of_each_task
def test_a_task_has_tests_of_both_kinds(assignment, task):
    assert public(task)
    assert hidden(task)


@of_each
def test_every_test_has_a_title(assignment):
    titles = [title(assignment, test) for test in assignment.tests()]
    assert all(titles)
    assert [text for text in titles if len(text) > 100 or text.endswith(".")] == []


@of_each
def test_a_submission_that_hangs_everywhere_is_graded_all_the_same(assignment):
    """Gradescope's default is ten minutes a submission, and the longest to be had is forty."""
    assert sum(map(assignment.time_limit_of, assignment.tests())) < 600


class TestHandout:
    @of_each_task
    def test_points_of_a_task(self, assignment, task):
        (row,) = (row for row in rows_of(assignment) if len(row) == 6 and row[0] == task.id)
        counts = [f(x) for x in (public(task), hidden(task)) for f in (len, points)]
        assert row[1:] == [f"{n:g}" for n in (*counts, task.points)]
        assert row_of_task(assignment, task)[-1] == f"{task.points:g}"

    @pytest.mark.parametrize(
        "assignment",
        [assignment for assignment in ASSIGNMENTS.values() if len(assignment.files) > 1],
        ids=lambda assignment: assignment.name,
    )
    def test_files_of_the_tasks(self, assignment):
        """The row of a file's first task names it; those below have an empty cell."""
        file = ""
        for task in assignment.tasks:
            file = row_of_task(assignment, task)[1].strip("`") or file
            assert assignment.file_of(task) == file

    @of_each
    def test_points_of_the_public_tests(self, assignment):
        listed = [row for row in rows_of(assignment) if re.fullmatch(r"\d+\.\d+", row[0])]
        expected = [
            [test.number, title(assignment, test), f"{test.points:g}"]
            for task in assignment.tasks
            for test in public(task)
        ]
        assert listed == expected

    @of_each
    def test_total(self, assignment):
        (row,) = (row for row in rows_of(assignment) if row[0] == "all")
        every = [test for task in assignment.tasks for test in public(task)]
        rest = [test for task in assignment.tasks for test in hidden(task)]
        expected = (len(every), points(every), len(rest), points(rest), 100)
        assert row[1:] == [f"{n:g}" for n in expected]

    @of_each
    def test_the_time_limit(self, assignment):
        assert f"A test may take {assignment.time_limit:g} seconds" in handout(assignment)
        limits = list(map(assignment.time_limit_of, assignment.tests()))
        assert min(limits) == assignment.time_limit
