"""What a submission may try, graded by the real judge, with the verdict of each.

A file in a folder named after an assignment holds the definitions in which it differs from the
solution, as a variant does (see `grader.authoring.overlay`), and in its docstring what it tries,
and

    test: 1.2            which test it is tried on
    verdict: failed      what the judge must make of it
    says: y was stored   what the message must say, if that matters
    seconds: 2           another time limit
    file: flash_lab.py   which file it replaces definitions of, where several have them

`honest_*` files are the controls: the same shape of program, without the cheat. An assignment that
is made for attacks alone, as `ranks`, has a house of its own: `ranks_house`. Attacks on the harness
and the machine that need no assignment are in tests/grader/judge/test_attacks.py.
"""

import os
import re
from pathlib import Path

import pytest

from grader import house as houses
from grader import manifest
from grader.authoring import overlay
from grader.house import House
from grader.judge import landlock
from grader.judge.supervisor import Judge

FOLDER = Path(__file__).parent
ATTACKS = sorted(path for path in FOLDER.glob("*/*.py") if path.name != "conftest.py")


@pytest.fixture(scope="module")
def judge():
    with Judge() as running:
        yield running


@pytest.fixture(autouse=True)
def tidy():
    """Where nothing keeps them from it, the attacks through files leave some behind."""
    yield
    for place in (Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"), Path("/"), Path.home()):
        for left in (*place.glob("bytewise-shard-[0-9]*.npy"), *place.glob("shard-[0-9]*")):
            if left.is_file():
                left.unlink()


@pytest.fixture
def result(judge, tmp_path):
    """`result(path, number)`: what becomes of one test if an attack is handed in."""

    def run(path, number, **limits):
        house = house_of(path.parent.name)
        assignment = manifest.load(path.parent.name, house)
        attack = overlay.Variant(path.stem, path, path.stem, (), field(path, "file"))
        overlay.write(assignment, attack, tmp_path, house)
        report = judge.grade_path(only_test(assignment, number, **limits), tmp_path, house=house)
        (found,) = report.tests
        return found

    return run


def house_of(name):
    """The house of an assignment: that of all, or its own."""
    own = FOLDER / f"{name}_house"
    return House(own) if own.is_dir() else houses.here()


def only_test(assignment, number, **limits):
    """The assignment with one test."""
    test = assignment.test(number).model_copy(update=limits)
    task = assignment.task_of(test).model_copy(update={"tests": [test]})
    return assignment.model_copy(update={"tasks": [task]})


def field(path, name):
    """What an attack's docstring says behind `name:`."""
    found = re.search(rf"^{name}: (.+)$", path.read_text(), re.MULTILINE)
    return found[1] if found else None


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_verdict(result, path):
    seconds = field(path, "seconds")
    limits = {"time_limit": float(seconds)} if seconds else {}
    found = result(path, field(path, "test"), **limits)
    assert found.verdict == field(path, "verdict"), found.message
    assert found.points == (found.max_points if found.passed else 0)
    assert (field(path, "says") or "") in found.message


@pytest.mark.skipif(
    os.geteuid() != 0 and not landlock.abi(),
    reason="neither Landlock nor another user keeps student code from files; the report says so",
)
def test_no_results_were_rewritten(result):
    """`rewrites_results` leaves a process behind: neither it nor what it wrote may be there."""
    target = Path("/tmp/bytewise-attack/results.json")
    target.parent.mkdir(exist_ok=True)
    try:
        target.write_text("{}")
        target.chmod(0o600)
        assert result(FOLDER / "rmsnorm" / "rewrites_results.py", "1.2").points == 0
        assert target.read_text() == "{}"
    finally:
        target.unlink(missing_ok=True)
        target.parent.rmdir()
