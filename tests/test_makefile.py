"""What the front door asks the shell to do, without doing it."""

import os
import shlex
import subprocess

import pytest

from grader import house

ROOT = house.here().root
ODD = ["ada's work/hw 3.zip", "a b", "$(touch no)", "plain", "é `x`"]


def asked(*arguments: str) -> list[str]:
    """The words of the last command that make would run."""
    done = subprocess.run(
        ["make", "-n", "--no-print-directory", "-o", ".venv/.ready", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if ".venv/bin/python" in line]
    return shlex.split(lines[-1])


@pytest.mark.parametrize("target", ["test", "grade", "report", "submit"])
@pytest.mark.parametrize("path", ODD, ids=range(len(ODD)))
def test_any_path_is_one_word(target: str, path: str) -> None:
    words = asked(target, "A=rmsnorm", f"SUBMISSION={path.replace('$', '$$')}")
    assert path in words


def test_a_tilde_is_the_home_folder_as_if_it_were_not_quoted() -> None:
    home = os.environ["HOME"]
    assert f"{home}/my hw.zip" in asked("grade", "A=rmsnorm", "SUBMISSION=~/my hw.zip")


def test_defaults() -> None:
    assert "starter/rmsnorm" in asked("grade")
    assert "starter/rmsnorm" in asked("test", "A=rmsnorm")
    assert asked("submit", "A=rmsnorm")[-2:] == ["submit", "rmsnorm"]
