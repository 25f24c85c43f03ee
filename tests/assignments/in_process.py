"""Every assignment of the tree, and its public and hidden tests, run in this process."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from grader import house, manifest
from grader.authoring.selection import only_tests
from grader.judge.inprocess import grade_in_process
from grader.manifest import Assignment
from grader.submission import Submission
from grader.verdict import TestResult

ASSIGNMENTS = {name: manifest.load(name) for name in house.names()}

of_each = pytest.mark.parametrize("assignment", ASSIGNMENTS.values(), ids=ASSIGNMENTS)


def grade(
    assignment: Assignment,
    folder: Path,
    *,
    seed: int | None = None,
    numbers: Collection[str] | None = None,
) -> list[TestResult]:
    """The result of every test, or of those of some numbers, on the declared files in a folder."""
    files = [file for file in assignment.files if (folder / file).is_file()]
    submission = Submission(folder, files, notes=[], problems=[])
    if numbers is not None:
        assignment = only_tests(assignment, numbers)
    return list(grade_in_process(assignment, submission, seed=seed).tests)
