"""One truth about points: the manifest, the tests' decorators and the handout's tables agree."""

import re

import pytest

from grader.authoring import agreement
from grader.judge.child import load_tests
from tests.assignments.flash_attention.in_process import ASSIGNMENT, HOUSE

TASKS = {task.id: task for task in ASSIGNMENT.tasks}


def title(test) -> str:
    """The line that students see of a test."""
    case = getattr(load_tests(ASSIGNMENT.test_path(test), HOUSE), test.case)
    return case(test.method).shortDescription()


def points(tests) -> int:
    return sum(test.points for test in tests)


def public(task):
    return [test for test in task.tests if not test.hidden]


def hidden(task):
    return [test for test in task.tests if test.hidden]


def test_a_hundred_points():
    assert ASSIGNMENT.total_points == 100
    assert [task.points for task in ASSIGNMENT.tasks] == [6, 4, 10, 10, 5, 3, 8, 6, 18, 16, 8, 6]


def test_two_thirds_of_the_points_are_public():
    share = sum(points(public(task)) for task in ASSIGNMENT.tasks)
    assert 60 <= share <= 70
    assert all(public(task) and hidden(task) for task in ASSIGNMENT.tasks)


def test_tests_and_manifest_agree():
    assert agreement.disagreements(ASSIGNMENT) == []


def test_every_test_has_a_title():
    titles = [title(test) for test in ASSIGNMENT.tests()]
    assert all(titles)
    assert all(len(text) <= 100 and not text.endswith(".") for text in titles)


def test_a_class_of_students_that_hang_is_graded_all_the_same():
    """Gradescope's default is ten minutes a submission, and the longest to be had is forty."""
    assert sum(map(ASSIGNMENT.time_limit_of, ASSIGNMENT.tests())) < 600


def test_no_test_may_hold_the_scores_of_the_long_ones():
    """8192 × 8192 scores in float32, beside the 200 MB of a worker that has imported torch."""
    for test in ASSIGNMENT.tests():
        if test.method == "test_memory":
            assert ASSIGNMENT.memory_limit_mb_of(test) * 10**6 < 8192**2 * 4 + 200 * 10**6


class TestHandout:
    @pytest.fixture
    def rows(self):
        """The cells of every row of every table."""
        text = (HOUSE / "assignments/flash_attention/README.md").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    @pytest.mark.parametrize("task", ASSIGNMENT.tasks, ids=lambda task: f"task {task.id}")
    def test_points_of_a_task(self, rows, task):
        (row,) = (row for row in rows if len(row) == 6 and row[0] == task.id)
        counts = [f(x) for x in (public(task), hidden(task)) for f in (len, points)]
        assert row[1:] == [f"{n:g}" for n in (*counts, task.points)]
        (first,) = (row for row in rows if row[0] == task.id and "`" in row[2])
        assert first[3] == f"{task.points:g}"

    def test_files_of_the_tasks(self, rows):
        listed = {row[0]: row[1].strip("`") for row in rows if row[0] in TASKS and "`" in row[2]}
        file = ""
        for task in ASSIGNMENT.tasks:
            file = listed[task.id] or file
            assert ASSIGNMENT.file_of(task) == file

    def test_points_of_the_public_tests(self, rows):
        listed = [row for row in rows if re.fullmatch(r"\d+\.\d+", row[0])]
        expected = [
            [test.number, title(test), f"{test.points:g}"]
            for task in ASSIGNMENT.tasks
            for test in public(task)
        ]
        assert listed == expected

    def test_total(self, rows):
        (row,) = (row for row in rows if row[0] == "all")
        every = [test for task in ASSIGNMENT.tasks for test in public(task)]
        rest = [test for task in ASSIGNMENT.tasks for test in hidden(task)]
        expected = (len(every), points(every), len(rest), points(rest), 100)
        assert row[1:] == [f"{n:g}" for n in expected]
