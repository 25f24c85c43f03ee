import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.gradescope.box import Box, Limits


@pytest.fixture
def box() -> Iterator[Box]:
    made = Box.make(Limits(cpus=0.25, memory_bytes=100_000_000))
    if made is None:
        pytest.skip(
            "no control groups can be made here: not root, or not allowed in this container"
        )
    with made:
        yield made


def run(box: Box, script: str) -> subprocess.CompletedProcess[str]:
    command = box.command([sys.executable, "-I", "-c", script, "an argument"])
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_within_the_limits_a_program_runs_as_it_would(box: Box) -> None:
    done = run(box, "import sys; print(sys.argv[1:]); sys.exit(5)")
    assert (done.stdout, done.returncode) == ("['an argument']\n", 5), done.stderr
    assert box.killed() == 0


def test_too_much_memory_is_death(box: Box) -> None:
    done = run(box, "x = bytearray(300_000_000); print(len(x))")
    assert (done.stdout, done.returncode) == ("", -9)
    assert box.killed() == 1


def test_memory_of_children_is_added_up(box: Box) -> None:
    child = "import time; x = bytearray(60_000_000); time.sleep(2)"
    script = (
        "import subprocess, sys\n"
        f"both = [subprocess.Popen([sys.executable, '-c', {child!r}]) for _ in range(2)]\n"
        "print(sorted(one.wait() for one in both))"
    )
    assert run(box, script).stdout == "[-9, 0]\n"


def test_cpu_time_is_rationed(box: Box) -> None:
    """The kernel counts it: half a second of CPU takes several periods in which it is held back."""
    script = "import time\nwhile time.process_time() < 0.5: pass"
    assert run(box, script).returncode == 0
    stat = [text for folder in box._folders for text in [read(folder / "cpu.stat")] if text]
    held_back = dict(line.split() for line in stat[-1].splitlines())["nr_throttled"]
    assert int(held_back) >= 5


def test_closing_kills_what_is_left_and_removes_the_groups(box: Box) -> None:
    process = subprocess.Popen(box.command(["sleep", "600"]))
    deadline = time.monotonic() + 10
    while not all(read(folder / "cgroup.procs") for folder in box._folders):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    box.close()
    assert process.wait(timeout=10) == -9
    assert not any(folder.exists() for folder in box._folders)


def test_no_box_where_none_can_be_made(tmp_path: Path) -> None:
    """A folder is no control group, and nothing is left in it."""
    (tmp_path / "memory").mkdir()
    assert Box.make(Limits(), mount=tmp_path) is None
    assert list((tmp_path / "memory").iterdir()) == []
    assert Box.make(Limits(), mount=tmp_path / "nothing") is None


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
