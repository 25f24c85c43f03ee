"""Selects the tests that can tell a variant from the solution: those that reach what it changes."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from grader import house as houses
from grader.authoring import overlay, slices
from grader.judge.supervisor import Judge
from grader.manifest import Assignment, Task, Test


@dataclass(frozen=True)
class Reach:
    """What of the solution a test depends on.

    Attributes:
        number: the test's.
        names: those that its slice mentions; None if it does not pass on its slice, so that it may
            depend on anything.
        seconds: that it took.
    """

    number: str
    names: frozenset[str] | None
    seconds: float


def only_tests(assignment: Assignment, numbers: Collection[str]) -> Assignment:
    """The assignment without the other tests, and without tasks that then have none."""
    tasks = []
    for task in assignment.tasks:
        if tests := [test for test in task.tests if test.number in numbers]:
            tasks.append(task.model_copy(update={"tests": tests}))
    return assignment.model_copy(update={"tasks": tasks})


def reaches(judge: Judge, assignment: Assignment, task: Task) -> list[Reach]:
    """What each test of a task reaches, proved by grading its slice."""
    solution = _solution(assignment)
    return [_reach(judge, assignment, test, solution) for test in task.tests]


def _reach(judge: Judge, assignment: Assignment, test: Test, solution: dict[str, str]) -> Reach:
    path = assignment.test_path(test)
    shown = houses.here().relative(path)
    words = slices.words_of(path.read_text(encoding="utf-8"), test.case, test.method, shown)
    part = slices.slice_for(solution, words)
    with tempfile.TemporaryDirectory(prefix="bytewise-slice-") as name:
        folder = Path(name)
        for file, text in part.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        report = judge.grade_path(only_tests(assignment, {test.number}), folder)
    (result,) = report.tests
    return Reach(test.number, part.names if result.passed else None, result.seconds)


def select(assignment: Assignment, found: Iterable[Reach], folder: Path) -> list[Reach]:
    """The tests that can judge a variant otherwise than the solution, the quickest first.

    Args:
        assignment: the assignment.
        found: what each of its tests reaches.
        folder: the variant's files, all of them.
    """
    solution = _solution(assignment)
    variant = {file: (folder / file).read_text(encoding="utf-8") for file in assignment.files}
    changed = slices.changed_names(solution, variant)
    differing = [file for file in assignment.files if solution[file] != variant[file]]
    affected = {one for file in differing for one in overlay.affected(file, variant)}
    tests = {
        test.number
        for task in assignment.tasks
        if assignment.file_of(task) in affected
        for test in task.tests
    }
    return sorted(
        (
            reach
            for reach in found
            if reach.number in tests
            if changed is None or reach.names is None or changed & reach.names
        ),
        key=lambda reach: reach.seconds,
    )


def _solution(assignment: Assignment) -> dict[str, str]:
    folder = houses.solution(assignment.name)
    return {file: (folder / file).read_text(encoding="utf-8") for file in assignment.files}
