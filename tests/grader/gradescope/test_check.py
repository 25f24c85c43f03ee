"""The zip is unpacked and its scripts are run, on all four submissions."""

import io
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from grader import manifest
from grader.gradescope.box import Limits
from grader.gradescope.check import Step, _resources, check, expected_seconds, slow_for_all
from grader.gradescope.meter import Usage

RMSNORM = manifest.load("rmsnorm")
ALL = ["solution", "starter", "syntax error", "empty"]


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Fails a test after which a folder or a user of the rehearsal is still there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o755)
    yield
    assert not list(tmp_path.glob("bytewise-gradescope-*"))
    assert f"bytewise-{os.getpid()}" not in {user.pw_name for user in pwd.getpwall()}


def right(steps: list[Step], names: list[str], printed: str) -> bool:
    assert [step.name for step in steps] == names, printed
    assert [step.wrong for step in steps] == [()] * len(names), printed
    for name in names:
        assert f"{name}: " in printed
    return True


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("nothing_left")
def test_with_the_packages_that_are_here() -> None:
    """All but `setup.sh`: the real `run_autograder` and grader, in the memory of a container.

    On as much of a processor as there is, to be done in a minute; the full rehearsal takes half a
    core.
    """
    console = Console(file=io.StringIO(), width=200)
    limits = Limits(cpus=4)
    steps = check(RMSNORM, prefix=Path(sys.prefix), limits=limits, console=console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert right(steps, ALL, printed)
    assert [step.score for step in steps] == ["100.0 of 100"] + ["0.0 of 100"] * 3
    tests = len(list(RMSNORM.tests()))
    assert [step.verdicts for step in steps] == [
        f"{tests} passed",
        f"{tests} not started",
        f"{tests} import error",
        f"{tests} missing file",
    ]
    for step in steps:
        # torch alone takes more than that; a measurement that misses the grader would be below.
        assert step.usage.peak_memory > 100_000_000
        assert step.usage.cpu_seconds > 1


@pytest.mark.skipif(
    not os.environ.get("BYTEWISE_FULL"),
    reason="installs torch and all packages afresh, which takes minutes and gigabytes: "
    "set BYTEWISE_FULL=1, or run make gradescope-check A=rmsnorm",
)
@pytest.mark.timeout(3600)
def test_from_nothing() -> None:
    console = Console(file=io.StringIO(), width=200)
    steps = check(RMSNORM, console=console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert right(steps, ["setup.sh", *ALL], printed)
    if os.geteuid() == 0:
        assert "as user " in printed
    assert f"bytewise-{os.getpid()}" not in {user.pw_name for user in pwd.getpwall()}


@pytest.mark.usefixtures("nothing_left")
def test_a_setup_that_fails_ends_it() -> None:
    console = Console(file=io.StringIO(), width=200)
    steps = check(RMSNORM, python=Path("/bin/false"), console=console)
    assert [step.name for step in steps] == ["setup.sh"]
    assert steps[0].wrong == ("setup.sh ended with status 1",)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "setup FAILED: BYTEWISE_PYTHON=/bin/false" in printed


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nothing_left")
def test_too_little_memory_is_noticed() -> None:
    """With 60 MB nothing can be graded: every submission is wrong, and each says why."""
    console = Console(file=io.StringIO(), width=200)
    limits = Limits(cpus=4, memory_bytes=60_000_000)
    steps = check(RMSNORM, prefix=Path(sys.prefix), limits=limits, console=console)
    for step in steps:
        words = "\n".join(step.wrong)
        assert "for want of memory" in words or "the container has 60 MB" in words, words
        assert step.log in console.file.getvalue()  # type: ignore[attr-defined]


def usage(**changed: object) -> Usage:
    values = {"status": 0, "seconds": 100.0, "cpu_seconds": 60.0, "peak_memory": 5 * 10**8}
    return Usage(**{**values, "timed_out": False, "left": (), **changed})  # type: ignore[arg-type]


def test_time_in_a_container_is_measured_or_else_computed() -> None:
    limits = Limits(cpus=0.5)
    assert expected_seconds(usage(), limits, boxed=True) == 100
    assert expected_seconds(usage(), limits, boxed=False) == 120
    assert expected_seconds(usage(seconds=130.0), limits, boxed=False) == 130


@pytest.mark.parametrize(
    ("changed", "killed", "said"),
    [
        ({}, 0, ""),
        ({"cpu_seconds": 301.0}, 0, "it needs 602 s; the container has 600 s"),
        ({"peak_memory": 751_000_000}, 0, "it holds 751 MB; the container has 750 MB"),
        ({}, 2, "the kernel killed 2 of its processes for want of memory"),
        ({"left": ("sleep",)}, 0, "processes were left running: sleep"),
        ({"status": 1}, 0, "run_autograder ended with status 1"),
        ({"status": -9, "timed_out": True}, 0, "it took more than 100 s and was ended"),
    ],
)
def test_what_a_container_would_not_bear(
    changed: dict[str, object], killed: int, said: str
) -> None:
    assert "\n".join(_resources(usage(**changed), Limits(), killed, boxed=False)) == said


def test_limits_that_a_container_has_no_time_for() -> None:
    tests = len(list(RMSNORM.tests()))
    enough = RMSNORM.model_copy(update={"time_limit": 570 // tests})
    assert slow_for_all(enough) == ""
    words = slow_for_all(RMSNORM.model_copy(update={"time_limit": 60.0}))
    assert f"all {tests} tests" in words and f"{60 * tests} s" in words
    assert f"a time_limit of {570 // tests} s" in words


@pytest.mark.usefixtures("nothing_left")
def test_the_commands_exit_status() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", "gradescope-check", "rmsnorm", "--python", "/bin/false"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "WRONG" in done.stdout and "Traceback" not in done.stderr
