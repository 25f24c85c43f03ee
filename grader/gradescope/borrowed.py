"""An environment for an unpacked tree, made in seconds from the packages of another one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"


class BorrowError(Exception):
    """The environment cannot be used; the message says why."""


def borrow(environment: Path, prefix: Path, tree: Path) -> None:
    """Makes a virtual environment in which grader and simulators are those of a tree.

    All other packages are hard links to those of the given environment.

    Args:
        environment: a virtual environment in which this project is installed.
        prefix: where to make the new one.
        tree: the folder that holds `grader/` and `shared/`.

    Raises:
        BorrowError: the project is not installed there, or no environment can be made.
    """
    theirs = environment / "bin" / "python"
    if not theirs.exists():
        raise BorrowError(f"{environment} is no virtual environment: it has no bin/python")
    packages = Path(_output([theirs, "-I", "-c", _PACKAGES]))
    if not list(packages.glob("bytewise-*.dist-info")):
        raise BorrowError(f"the project is not installed in {environment}; run make setup")
    _output([theirs, "-m", "venv", "--without-pip", prefix])
    ours = Path(_output([prefix / "bin" / "python", "-I", "-c", _PACKAGES]))
    shutil.copytree(
        packages,
        ours,
        symlinks=True,
        dirs_exist_ok=True,
        copy_function=_link,
        # The project's metadata stay: they make Triton find the simulator.
        ignore=shutil.ignore_patterns("__editable__*bytewise*", "__pycache__/__editable__*"),
    )
    (ours / "bytewise.pth").write_text(f"{tree}\n{tree / 'shared'}\n", encoding="utf-8")


def _output(command: list[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = " ".join(map(str, command))
        raise BorrowError(f"{words} failed: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()


def _link(source: str, target: str) -> None:
    """A hard link; a copy where the file system has none or the link would cross two of them."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
