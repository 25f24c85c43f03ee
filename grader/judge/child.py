"""The judge's child: runs one test and reaches its verdict.

It holds the test's code, the expected values and the counters, and none of these ever leave it. It
is forked for one test, so that a test which hangs or dies takes nothing else along.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
import unittest
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from grader.judge.faults import SimulatorFault, WorkerGone
from grader.manifest import Test
from grader.testing.case import AssignmentTestCase
from grader.testing.problems import (
    Crashed,
    ImportFailed,
    KernelFault,
    MissingFile,
    NotStarted,
    StudentError,
    StudentProblem,
    TimedOut,
)
from grader.testing.student import Student
from grader.verdict import LeaderboardEntry, TestResult, Verdict, clamp

#: The verdict of each kind of problem; any other kind is a failure.
_VERDICTS: dict[type[StudentProblem], Verdict] = {
    NotStarted: Verdict.NOT_STARTED,
    ImportFailed: Verdict.IMPORT_ERROR,
    MissingFile: Verdict.MISSING_FILE,
    Crashed: Verdict.CRASHED,
    WorkerGone: Verdict.CRASHED,
    TimedOut: Verdict.TIMED_OUT,
}


class Outcome(BaseModel):
    """What a child reports to the supervisor.

    Attributes:
        result: the test's result, without time and memory.
        worker_gone: whether a process of the student's ended in a call; the supervisor knows how.
        gone: the process id of the rank's process that did; 0 if it was not a rank's.
    """

    model_config = ConfigDict(frozen=True)

    result: TestResult
    worker_gone: bool = False
    gone: int = 0


def load_tests(path: Path, root: Path) -> ModuleType:
    """Imports a test's file, which may import from the tree's root. Raises as `load_case`."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = f"grader_tests_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LookupError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_case(path: Path, test: Test, root: Path) -> AssignmentTestCase:
    """Imports a test's file and makes the test case for its method.

    Args:
        path: the test's file.
        test: the test.
        root: the tree's root, from which test files import (`assignments.rmsnorm.oracle`).

    Raises:
        LookupError: the file has no such class or method, or the class is no `AssignmentTestCase`.
        Exception: whatever importing the file raises.
    """
    module = load_tests(path, root)
    case = getattr(module, test.case, None)
    if not (isinstance(case, type) and issubclass(case, AssignmentTestCase)):
        raise LookupError(f"{path.name} has no AssignmentTestCase {test.case}")
    if not callable(getattr(case, test.method, None)):
        raise LookupError(f"{test.case} in {path.name} has no method {test.method}")
    return case(test.method)


def run_test(
    blank: TestResult, load: Callable[[], AssignmentTestCase], student: Student, seed: int
) -> Outcome:
    """Runs a test and reaches its verdict. Raises nothing.

    Args:
        blank: the result to fill in.
        load: makes the test case.
        student: the submission.
        seed: the run's.
    """
    try:
        case = load()
        case.student = student
        case.run_seed = seed
    except Exception:
        return _grader_error(blank, "the test could not be loaded")
    method = getattr(case, case._testMethodName)
    blank = blank.model_copy(update={"title": title_of(case) or blank.title})
    gone: int | None = None
    try:
        _run(case, method)
        if not student.calls:
            return _grader_error(blank, "the test passed without calling any student code", trace=0)
        points = _points(method, blank.max_points, unset=blank.max_points)
        passed = points == clamp(blank.max_points, blank.max_points)
        verdict, message = (Verdict.PASSED, "") if passed else (Verdict.FAILED, "partial credit")
    except StudentProblem as problem:
        verdict = _VERDICTS.get(type(problem), Verdict.FAILED)
        # Without a line of the submission, as where it is called wrongly, the call has to say it.
        where = (
            isinstance(problem, StudentError | KernelFault) and not problem.frames and student.last
        )
        points, message = 0.0, f"{problem}\n  in {student.last}" if where else str(problem)
        gone = problem.pid if isinstance(problem, WorkerGone) else None
    except unittest.SkipTest as skipped:
        return _grader_error(blank, f"the test skipped itself: {skipped}", trace=0)
    except case.failureException as failure:
        where = f"\n  in {student.last}" if student.last else ""
        # What a test has set before it failed it still gives, and the failure says what is missing.
        points = _points(method, blank.max_points, unset=0.0)
        verdict, message = Verdict.FAILED, f"{failure}{where}"
    except SimulatorFault as fault:
        return _grader_error(blank, str(fault))
    except Exception:
        return _grader_error(blank, "the test itself failed")
    result = blank.model_copy(
        update={
            "verdict": verdict,
            "points": points,
            "message": message,
            "evidence": tuple(case.evidence),
            "leaderboard": _leaderboard(method),
        }
    )
    return Outcome(result=result, worker_gone=gone is not None, gone=gone or 0)


def _run(case: AssignmentTestCase, method: Callable[[], Any]) -> None:
    """What unittest's runner does around a test, except that nothing is swallowed."""
    kind = type(case)
    try:
        kind.setUpClass()
        case.setUp()
        try:
            method()
        finally:
            case.tearDown()
    finally:
        case.doCleanups()
        kind.tearDownClass()
        kind.doClassCleanups()


def title_of(case: AssignmentTestCase) -> str:
    """The first line of a test's docstring; empty if it has none."""
    return " ".join((case.shortDescription() or "").split())


def _decoration(method: Any, name: str) -> Any:
    """What a decorator of gradescope-utils has left on a method, or on one that it wraps."""
    function = getattr(method, "__func__", method)
    while function is not None:
        if (value := vars(function).get(name)) is not None:
            return value
        function = getattr(function, "__wrapped__", None)
    return None


def _points(method: Any, most: float, unset: float) -> float:
    """`unset`, unless the test has set a score (`@partial_credit`): then its share of them."""
    score, weight = _decoration(method, "__score__"), _decoration(method, "__weight__")
    if score is None:
        return clamp(unset, most)
    if not isinstance(weight, int | float) or weight <= 0:
        raise ValueError(f"@partial_credit({weight!r}) has no positive weight")
    return clamp(float(score) / weight * most, most)


def _leaderboard(method: Any) -> tuple[LeaderboardEntry, ...]:
    name = _decoration(method, "__leaderboard_column__")
    value = _decoration(method, "__leaderboard_value__")
    if name is None or value is None:
        return ()
    ascending = _decoration(method, "__leaderboard_sort_order__") == "asc"
    order: Literal["asc", "desc"] = "asc" if ascending else "desc"
    return (LeaderboardEntry(name=name, value=float(value), order=order),)


def _grader_error(blank: TestResult, what: str, trace: int = 12) -> Outcome:
    """The grader's own fault: shown as such, with the traceback for whoever maintains it."""
    text = what
    if trace:
        text += "\n" + "".join(traceback.format_exc(limit=-trace))
    update = {"verdict": Verdict.GRADER_ERROR, "points": 0.0, "message": text}
    return Outcome(result=blank.model_copy(update=update))
