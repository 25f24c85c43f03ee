"""Runs an assignment's tests with pytest, in one process: `pytest assignments/rmsnorm/public`.

    pytest assignments/rmsnorm/public --submission PATH    another submission than starter/rmsnorm
    pytest assignments/rmsnorm/public --seed 7             other random inputs

Work that is not started is skipped, with the stub's words as the reason. A failure shows the
student's frames and the measured error, not the harness; `--pdb` lands in the student's code. A
test may take as long as the manifest says (`--timeout=SECONDS`: so long; 0: for ever).
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from grader import house as houses
from grader import manifest
from grader.house import House, HouseError
from grader.submission import Submission, read
from grader.testing.case import AssignmentTestCase
from grader.testing.local import LocalStudent
from grader.testing.problems import StudentError, StudentProblem, TimedOut
from grader.testing.submitted import SubmittedCode, require_read

#: The folder with the files that were tested last.
SUBMITTED = pytest.StashKey[Path]()
#: What was wrong, and the first test in which it was.
_FAILURES = pytest.StashKey[dict[str, str]]()
#: Files whose import had no end: name → the test that tried.
_ENDLESS = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--submission` and `--seed`."""
    group = parser.getgroup("bytewise", "grading a submission")
    group.addoption(
        "--submission",
        metavar="PATH",
        default=None,
        help="a folder, zip, Python file or notebook (default: starter/<assignment>)",
    )
    group.addoption(
        "--seed", type=int, default=None, help="of the random inputs (default: the assignment's)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives every test of an assignment its time limit, as the judge does."""
    if not config.pluginmanager.hasplugin("timeout") or config.getoption("timeout") is not None:
        return
    for item in items:
        case = getattr(item, "cls", None)
        if not (isinstance(case, type) and issubclass(case, AssignmentTestCase)):
            continue
        found = assignment_of(item.path)
        number = getattr(getattr(item, "function", None), "__number__", None)
        if found is None or number is None:
            continue
        _, assignment = found
        limits = {test.number: assignment.time_limit_of(test) for test in assignment.tests()}
        limit = limits.get(str(number), assignment.time_limit)
        item.add_marker(pytest.mark.timeout(limit))


def _limit(item: pytest.Item) -> float:
    """The seconds that a test may take; 0 if nobody counts them."""
    if not item.config.pluginmanager.hasplugin("timeout"):
        return 0.0
    asked = item.config.getoption("timeout")
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if asked is None and marker else asked or 0)


def _is_timeout(error: BaseException | None) -> bool:
    """Whether it is what pytest-timeout raises in whatever is running."""
    return isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout (>")


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Times a test of an assignment as pytest-timeout does, without its print of all threads.

    Where a test has ranks these are threads, most of which wait somewhere in the grader. What a
    student needs, the line of the one that has no end, the failure says.
    """
    case = getattr(item, "cls", None)
    ours = isinstance(case, type) and issubclass(case, AssignmentTestCase)
    if not ours or settings.method != "signal":
        return None
    if threading.current_thread() is not threading.main_thread():
        return None
    import pytest_timeout  # type: ignore[import-untyped]

    def ring(signum: int, frame: FrameType | None) -> None:
        if settings.disable_debugger_detection or not pytest_timeout.is_debugging():
            pytest.fail(pytest_timeout.PYTEST_FAILURE_MESSAGE % settings.timeout)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]  # which pytest-timeout calls
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


class _Watched(LocalStudent):
    """A submission in this process, whose calls pytest-timeout may end.

    Args:
        folder: where the declared files are.
        files: their names, the main file first.
        submission: what kept files from being read; None if nothing did.
        number: the test's.
        limit: its seconds, for the message.
        endless: files whose import had no end, and the tests that tried; added to.
    """

    def __init__(
        self,
        folder: Path,
        files: Sequence[str],
        submission: Submission | None,
        number: str,
        limit: float,
        endless: dict[str, str],
    ) -> None:
        super().__init__(folder, files)
        self._submission = submission
        self._files = {Path(file).stem: file for file in files}
        self._number = number
        self._limit = limit
        self._endless = endless

    def _begin(self, name: str, call: str, codes: Sequence[SubmittedCode]) -> None:
        """Imports a file that may have no end once: who waits for it knows by then."""
        file = self._files[name.rpartition(":")[0] or next(iter(self._files))]
        require_read(self._submission, file)
        if file in self._endless:
            raise TimedOut(
                f"{file} was not imported again: that had no end in test {self._endless[file]}"
            )
        try:
            with self._during(lambda: f"while {file} was imported"):
                super()._begin(name, call, codes)
        except TimedOut:
            self._endless[file] = self._number
            raise

    @contextmanager
    def _during(self, doing: Callable[[], str]) -> Iterator[None]:
        """Says that time ran out, where it did."""
        try:
            yield
        except StudentProblem as problem:
            if not _is_timeout(problem.__cause__):
                raise
            late = TimedOut(f"no result after {self._limit:g} s, {doing()}", problem.frames)
            raise late.with_traceback(problem.__traceback__) from None


@pytest.fixture(autouse=True)
def _submission(request: pytest.FixtureRequest) -> None:
    """Gives every `AssignmentTestCase` its submission and its seed."""
    case = request.instance
    if not isinstance(case, AssignmentTestCase) or hasattr(case, "student"):
        return
    found = assignment_of(Path(request.path))
    if found is None:
        return
    house, assignment = found
    asked = request.config.getoption("--submission")
    path = Path(asked) if asked else house.starter(assignment.name)
    seed = request.config.getoption("--seed")
    folder, submission = _folder(path, assignment, request)
    request.config.stash[SUBMITTED] = folder
    endless = request.config.stash.setdefault(_ENDLESS, {})
    case.student = _Watched(
        folder, assignment.files, submission, case.number, _limit(request.node), endless
    )
    case.run_seed = assignment.seed if seed is None else seed


@functools.cache
def assignment_of(test_file: Path) -> tuple[House, manifest.Assignment] | None:
    """The assignment whose public or hidden test a file is, read once a file."""
    try:
        house = houses.find(test_file)
    except HouseError:
        return None
    for name in house.names():
        if any(test_file.is_relative_to(tree) for tree in (house.public(name), house.hidden(name))):
            return house, manifest.load(name, house)
    return None


def _folder(
    path: Path, assignment: manifest.Assignment, request: pytest.FixtureRequest
) -> tuple[Path, Submission | None]:
    """The folder with the declared files: the student's own where it can be, for breakpoints."""
    if path.is_dir() and all((path / file).is_file() for file in assignment.files):
        return path, None
    into = request.getfixturevalue("tmp_path_factory").mktemp("submission")
    return into, read(path, assignment, into)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows what a student can act on: the message and where in the test it was asked for."""
    report = yield
    case = getattr(item, "instance", None)
    if isinstance(case, AssignmentTestCase) and report.failed and call.excinfo is not None:
        error = call.excinfo.value
        if _is_timeout(error):
            error = AssertionError(
                f"no result after {_limit(item):g} s: the test was still checking what came of the "
                "calls"
            )
        if isinstance(error, StudentProblem | AssertionError):
            lines = [
                f"{item.path.name}:{entry.lineno + 1}"
                for entry in call.excinfo.traceback
                if Path(entry.path) == item.path
            ]
            place = lines[-1] if lines else item.path.name
            first = item.config.stash.setdefault(_FAILURES, {}).setdefault(str(error), case.number)
            text = str(error) if first == case.number else f"as test {first}"
            asked = f"asked for at {place}, with seed {case.run_seed}"
            lacks_lines = isinstance(error, StudentError) and not error.frames
            if case.student.last and (lacks_lines or not isinstance(error, StudentProblem)):
                text += f"\n  in {case.student.last}"
            report.longrepr = f"{text}\n\n  {asked}"
    return report
