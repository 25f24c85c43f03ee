"""Runs the tests in this very process: for a debugger, never for a grade that has to be believed.

No limits, no isolation: a submission that hangs, hangs this. What comes out is the same report.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from grader import house as houses
from grader.judge.child import load_case, run_test
from grader.judge.supervisor import Listener, of_tasks, submitted_sources
from grader.manifest import Assignment
from grader.submission import Submission
from grader.testing.local import LocalStudent
from grader.verdict import GradeReport, Verdict, empty_report, empty_result


def grade_in_process(
    assignment: Assignment,
    submission: Submission,
    *,
    seed: int | None = None,
    only: Collection[str] | None = None,
    house: houses.House | None = None,
    listener: Listener = lambda result, report: None,
) -> GradeReport:
    """As `Judge.grade`, in this process.

    Raises:
        KeyError: no such task.
    """
    start = time.monotonic()
    seed = assignment.seed if seed is None else seed
    house = house or houses.here()
    report = of_tasks(empty_report(assignment, seed, "the test has not run"), only).model_copy(
        update={
            "notes": tuple(submission.notes),
            "problems": tuple(problem.message for problem in submission.problems),
            "protections": {"process": "none: student code ran in the grader's own process"},
            "sources": submitted_sources(submission),
        }
    )
    for test in assignment.tests():
        if only is not None and assignment.task_of(test).id not in only:
            continue
        path: Path = assignment.test_path(test, house)
        began = time.monotonic()
        outcome = run_test(
            empty_result(assignment, test, Verdict.GRADER_ERROR),
            lambda path=path, test=test: load_case(path, test, house.root),  # type: ignore[misc]
            LocalStudent(submission.folder, assignment.files),
            seed,
        )
        result = outcome.result.model_copy(update={"seconds": time.monotonic() - began})
        report = report.with_result(result)
        listener(result, report)
    return report.model_copy(update={"seconds": time.monotonic() - start})
