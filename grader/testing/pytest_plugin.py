"""Runs an assignment's tests with pytest, in one process: `pytest assignments/rmsnorm/public`.

    pytest assignments/rmsnorm/public --submission PATH    another submission than starter/rmsnorm
    pytest assignments/rmsnorm/public --seed 7             other random inputs

Work that is not started is skipped, with the stub's words as the reason. A failure shows the
student's frames and the measured error, not the harness; `--pdb` lands in the student's code.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.testing.case import AssignmentTestCase
from grader.testing.local import LocalStudent
from grader.testing.problems import StudentProblem


@dataclass(frozen=True)
class _Assignment:
    """What the plugin needs to know of `assignment.toml`."""

    name: str
    house: Path
    files: tuple[str, ...]
    seed: int


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--submission` and `--seed`."""
    group = parser.getgroup("bytewise", "grading a submission")
    group.addoption(
        "--submission",
        metavar="PATH",
        default=None,
        help="folder with the submitted files (default: starter/<assignment>)",
    )
    group.addoption(
        "--seed",
        type=int,
        default=None,
        help="seed of the random inputs (default: the assignment's)",
    )


@pytest.fixture(autouse=True)
def _submission(request: pytest.FixtureRequest) -> None:
    """Gives every `AssignmentTestCase` its submission and its seed."""
    case = request.instance
    if isinstance(case, AssignmentTestCase) and not hasattr(case, "student"):
        assignment = _assignment_of(Path(request.path))
        if assignment is not None:
            asked = request.config.getoption("--submission")
            folder = Path(asked) if asked else assignment.house / "starter" / assignment.name
            if folder.is_file():
                folder = folder.parent
            seed = request.config.getoption("--seed")
            case.student = LocalStudent(folder, assignment.files)
            case.run_seed = assignment.seed if seed is None else seed


def _assignment_of(test_file: Path) -> _Assignment | None:
    """The assignment whose test a file is: beside its `public/`, or named by the hidden folder."""
    for folder in test_file.parents:
        # public: <house>/assignments/<name>/public/…; hidden: <house>/tests/hidden/<name>/…
        candidates = [(folder, folder.parent.parent)]
        if folder.parent.name == "hidden":
            house = folder.parent.parent.parent
            candidates.append((house / "assignments" / folder.name, house))
        for place, house in candidates:
            manifest = place / "assignment.toml"
            if manifest.is_file():
                data = tomllib.loads(manifest.read_text(encoding="utf-8"))
                return _Assignment(data["name"], house, tuple(data["files"]), data.get("seed", 0))
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[pytest.TestReport]:
    """Shows what a student can act on: the message and where in the test it was asked for."""
    report: pytest.TestReport = yield  # type: ignore[assignment,misc]
    instance = getattr(item, "instance", None)
    if isinstance(instance, AssignmentTestCase) and report.failed and call.excinfo is not None:
        error = call.excinfo.value
        if isinstance(error, StudentProblem | AssertionError):
            place = next(
                (
                    f"{Path(entry.path).name}:{entry.lineno + 1}"
                    for entry in call.excinfo.traceback
                    if Path(entry.path) == item.path
                ),
                item.path.name,
            )
            report.longrepr = f"{error}\n\n  asked for at {place}, with seed {instance.run_seed}"
    return report  # type: ignore[return-value]
