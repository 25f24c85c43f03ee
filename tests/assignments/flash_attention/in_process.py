"""Grades a folder with the assignment's public and hidden tests, in this process."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from grader import manifest
from grader.judge.inprocess import grade_in_process
from grader.submission import Submission
from grader.verdict import TestResult

HOUSE = Path(__file__).resolve().parents[3]
ASSIGNMENT = manifest.load("flash_attention")


def grade(
    folder: Path, *, seed: int | None = None, tasks: Collection[str] | None = None
) -> list[TestResult]:
    """The result of every test, or of those of some tasks, on the declared files in a folder."""
    files = [file for file in ASSIGNMENT.files if (folder / file).is_file()]
    submission = Submission(folder, files, notes=[], problems=[])
    report = grade_in_process(ASSIGNMENT, submission, seed=seed, only=tasks)
    return [test for task in report.tasks for test in task.tests]
