"""What is installed is what is there: every package, and every file that a package reads."""

import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def tracked_files() -> list[Path]:
    """Files of the packages, relative to the folder that they are imported from."""
    listed = subprocess.run(
        ["git", "ls-files", "shared", "grader"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode != 0:
        pytest.skip("which files belong to the packages is git's to say, and there is none here")
    return [Path(line.removeprefix("shared/")) for line in listed.stdout.splitlines()]


def test_every_package_is_listed():
    files = [path for path in tracked_files() if path.suffix == ".py"]
    assert {".".join(path.parent.parts) for path in files} == set(SETUPTOOLS["packages"])


def test_every_other_file_is_listed():
    for path in tracked_files():
        patterns = SETUPTOOLS["package-data"]
        found = [
            pattern
            for package, listed in patterns.items()
            for pattern in listed
            if fnmatch(str(path), f"{package.replace('.', '/')}/{pattern}")
        ]
        assert path.suffix == ".py" or found, path
