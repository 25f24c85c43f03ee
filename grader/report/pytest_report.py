"""A pytest plugin: `--tables` prints, after the run, what each test measured and what it earns.

Tests run in order of their numbers, as the handout presents them. The points are what the tests at
hand are worth here and now; a grade is given by the judge alone.
"""

from __future__ import annotations

import io
from collections.abc import Generator

import pytest
from rich.console import Console

from grader import manifest
from grader.environment import absent_imports
from grader.report import terminal
from grader.testing import AssignmentTestCase
from grader.testing.problems import TimedOut
from grader.testing.pytest_plugin import SUBMITTED, assignment_of
from grader.verdict import GradeReport, TestResult, Verdict, empty_report

_RESULTS = pytest.StashKey[dict[str, TestResult]]()
_ASSIGNMENT = pytest.StashKey[manifest.Assignment]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--tables`."""
    parser.getgroup("bytewise").addoption(
        "--tables", action="store_true", help="print outputs, bytes and points after the run"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts an assignment's tests by number; all others keep their places behind them."""

    def place(item: pytest.Item) -> tuple[bool, list[int]]:
        number = getattr(getattr(item, "function", None), "__number__", None)
        parts = str(number).split(".") if number is not None else []
        return not parts, [int(part) for part in parts if part.isdigit()]

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keeps what the test measured."""
    report = yield
    case = getattr(item, "instance", None)
    if (
        call.when == "call"
        and isinstance(case, AssignmentTestCase)
        and item.config.getoption("--tables")
    ):
        _keep(item, case, call, report)
    return report


def _keep(
    item: pytest.Item,
    case: AssignmentTestCase,
    call: pytest.CallInfo[None],
    report: pytest.TestReport,
) -> None:
    found = assignment_of(item.path)
    if found is None:
        return
    _, assignment = found
    item.config.stash[_ASSIGNMENT] = assignment
    try:
        test = assignment.test(case.number)
    except KeyError:
        return  # a test that the manifest does not list: `make check` says so
    verdict = {"passed": Verdict.PASSED, "skipped": Verdict.NOT_STARTED}.get(
        report.outcome, Verdict.FAILED
    )
    if call.excinfo is not None and isinstance(call.excinfo.value, TimedOut):
        verdict = Verdict.TIMED_OUT
    result = TestResult(
        number=test.number,
        title=" ".join((case.shortDescription() or test.method).split()),
        task=assignment.task_of(test).id,
        points=test.points if verdict is Verdict.PASSED else 0.0,
        max_points=test.points,
        verdict=verdict,
        message=_message(verdict, item, call),
        evidence=tuple(case.evidence),
        seconds=report.duration,
    )
    item.config.stash.setdefault(_RESULTS, {})[test.number] = result


def _message(verdict: Verdict, item: pytest.Item, call: pytest.CallInfo[None]) -> str:
    """pytest has printed what was wrong; the stub's words it prints only if asked to."""
    if verdict is Verdict.PASSED or call.excinfo is None:
        return ""
    if verdict is Verdict.NOT_STARTED:
        return str(call.excinfo.value)
    return f"why: see {item.location[2]} above"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints the tables."""
    assignment = config.stash.get(_ASSIGNMENT, None)
    results = config.stash.get(_RESULTS, {})
    if assignment is None or not results:
        return
    colours = terminalreporter.hasmarkup
    text = io.StringIO()
    console = Console(
        file=text,
        highlight=False,
        force_terminal=colours,
        width=max(terminalreporter._tw.fullwidth, 120),
    )
    folder = config.stash[SUBMITTED]
    notes = tuple(map(str, absent_imports(folder, assignment.files)))
    terminal.show(_report(assignment, results).model_copy(update={"notes": notes}), console)
    terminalreporter.write_line("")
    terminalreporter.write(text.getvalue())


def _report(assignment: manifest.Assignment, results: dict[str, TestResult]) -> GradeReport:
    """A report of the tests that ran, and no others."""
    report = empty_report(assignment, assignment.seed, "")
    tasks = tuple(
        task.model_copy(update={"tests": ran})
        for task in report.tasks
        if (ran := tuple(results[t.number] for t in task.tests if t.number in results))
    )
    seconds = sum(result.seconds for result in results.values())
    return report.model_copy(update={"tasks": tasks, "seconds": seconds})
