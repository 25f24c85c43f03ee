"""`--tables`, as a student meets it: real pytest runs on a real submission."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from grader import house


def run(submission: Path, *options: str) -> str:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-rN", "-p", "no:cacheprovider"),
            *("--tables", f"--submission={submission}", *options),
            str(house.here().public("rmsnorm")),
        ],
        capture_output=True,
        text=True,
        cwd=house.here().root,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_student_with_one_task_done_sees_it_passed_and_the_rest_not_started(
    tmp_path: Path,
) -> None:
    solution = (house.solution("rmsnorm") / "rmsnorm.py").read_text(encoding="utf-8")
    starter = (house.starter("rmsnorm") / "rmsnorm.py").read_text(encoding="utf-8")
    heading = "# Task 2: backward"
    done_one = solution[: solution.index(heading)] + starter[starter.index(heading) :]
    (tmp_path / "rmsnorm.py").write_text(done_one, encoding="utf-8")
    output = run(tmp_path)
    assert "| 1    | The forward kernel      | 21 / 21 | passed      |" in output
    assert "| 2    | The backward kernel     |  0 / 24 | not started |" in output
    assert "not started: rmsnorm 2: allocate dx and dg_partial" in output
    assert "2·M·N·s = 2·64·100·4 = 51,200 B" in output
    first = [line.split()[0] for line in output.splitlines() if line[:3] in ("  1", "  2", "  3")]
    assert first == sorted(first, key=lambda number: [int(part) for part in number.split(".")])


def test_a_failure_says_why_and_earns_nothing(tmp_path: Path) -> None:
    solution = (house.solution("rmsnorm") / "rmsnorm.py").read_text(encoding="utf-8")
    wrong = solution.replace(
        "tl.sum(x * x, axis=0) / N + eps", "tl.sum(x * x, axis=0) / BLOCK + eps"
    )
    assert wrong != solution
    (tmp_path / "rmsnorm.py").write_text(wrong, encoding="utf-8")
    output = run(tmp_path, "-k", "TestForward")
    assert "1.3   failed        0/4" in output
    assert "1.1   passed        3/3" in output
    assert "FAILURES" in output


def test_an_import_that_grading_does_not_have_is_noted(tmp_path: Path) -> None:
    solution = (house.solution("rmsnorm") / "rmsnorm.py").read_text(encoding="utf-8")
    (tmp_path / "rmsnorm.py").write_text(f"{solution}\nimport pytest\n", encoding="utf-8")
    output = " ".join(run(tmp_path, "-k", "test_one_row").split())
    assert "passed" in output
    assert "note: rmsnorm.py, line" in output
    assert "imports pytest, which will fail: there is no module pytest where" in output
