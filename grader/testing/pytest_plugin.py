"""Runs an assignment's tests with pytest, in one process: `pytest assignments/rmsnorm/public`.

    pytest assignments/rmsnorm/public --submission PATH    another submission than starter/rmsnorm
    pytest assignments/rmsnorm/public --seed 7             other random inputs

Work that is not started is skipped, with the stub's words as the reason. A failure shows the
student's frames and the measured error, not the harness; `--pdb` lands in the student's code.
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from pathlib import Path

import pytest

from grader import house as houses
from grader import manifest
from grader.house import House, HouseError
from grader.testing.case import AssignmentTestCase
from grader.testing.local import LocalStudent
from grader.testing.problems import StudentProblem

#: The folder with the files that were tested last.
SUBMITTED = pytest.StashKey[Path]()


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
    folder = _folder(path, assignment, request)
    request.config.stash[SUBMITTED] = folder
    case.student = LocalStudent(folder, assignment.files)
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


def _folder(path: Path, assignment: manifest.Assignment, request: pytest.FixtureRequest) -> Path:
    """The folder with the declared files: the student's own where it can be, for breakpoints."""
    if path.is_dir() and all((path / file).is_file() for file in assignment.files):
        return path
    from grader.submission import read

    into = request.getfixturevalue("tmp_path_factory").mktemp("submission")
    submission = read(path, assignment, into)
    if submission.problems:
        words = "\n".join(problem.message for problem in submission.problems)
        pytest.fail(f"{path}: {words}", pytrace=False)
    return into


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows what a student can act on: the message and where in the test it was asked for."""
    report = yield
    case = getattr(item, "instance", None)
    if isinstance(case, AssignmentTestCase) and report.failed and call.excinfo is not None:
        error = call.excinfo.value
        if isinstance(error, StudentProblem | AssertionError):
            lines = [
                f"{item.path.name}:{entry.lineno + 1}"
                for entry in call.excinfo.traceback
                if Path(entry.path) == item.path
            ]
            place = lines[-1] if lines else item.path.name
            report.longrepr = f"{error}\n\n  asked for at {place}, with seed {case.run_seed}"
    return report
