import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from grader.gradescope import meter
from grader.gradescope.meter import Usage

MB = 1_000_000


@pytest.fixture
def run(tmp_path: Path):
    def start(script: str, seconds: float = 60) -> Usage:
        return meter.run(
            [sys.executable, "-I", "-c", script],
            log=tmp_path / "log",
            seconds=seconds,
            environment={"ONLY": "this"},
            folder=tmp_path,
        )

    return start


def test_status_output_environment_and_folder(run, tmp_path: Path) -> None:
    script = (
        "import os, sys; print(os.environ['ONLY'], len(os.environ) < 4, os.getcwd(), flush=True);"
        "print(sys.stdin.read() == '', file=sys.stderr); sys.exit(7)"
    )
    usage = run(script)
    assert (usage.status, usage.timed_out, usage.left) == (7, False, ())
    assert (tmp_path / "log").read_text() == f"this True {tmp_path}\nTrue\n"


def test_memory_of_a_child_counts(run) -> None:
    child = "x = bytearray(150_000_000); import time; time.sleep(1)"
    usage = run(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    assert 150 * MB < usage.peak_memory < 250 * MB


def test_memory_that_is_shared_counts_once(run) -> None:
    script = (
        "import os, time; x = bytearray(150_000_000); pids = [os.fork() for _ in range(2)];"
        "time.sleep(1)"  # four processes
    )
    usage = run(script)
    assert 150 * MB < usage.peak_memory < 300 * MB


def test_cpu_time_of_a_grandchild_counts(run) -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    usage = run(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    assert usage.cpu_seconds >= 0.5


def test_what_hangs_is_ended_with_its_children(run, tmp_path: Path) -> None:
    script = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    usage = run(script, seconds=1.5)
    assert usage.timed_out and usage.status == -9
    assert not alive(int((tmp_path / "pid").read_text()))


def test_what_is_left_is_said_and_killed(run, tmp_path: Path) -> None:
    script = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "time.sleep(0.5)"  # long enough to be seen
    )
    usage = run(script)
    assert usage.status == 0
    assert usage.left == ("sleep",)
    assert not alive(int((tmp_path / "pid").read_text()))


def alive(pid: int) -> bool:
    for _ in range(50):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return False
        time.sleep(0.05)
    os.kill(pid, 9)
    return True
