import subprocess
import sys
import venv
from pathlib import Path

import pytest

from grader import house
from grader.gradescope.borrowed import BorrowError, borrow


def test_packages_are_theirs_and_the_project_is_the_trees(tmp_path: Path) -> None:
    tree, prefix = tmp_path / "tree", tmp_path / "prefix"
    for package in ("grader", "shared/mini_triton"):
        (tree / package).mkdir(parents=True)
        (tree / package / "__init__.py").write_text(f"MADE_FOR = {str(tmp_path)!r}\n")
    borrow(Path(sys.prefix), prefix, tree)
    script = (
        "import grader, mini_triton, rich, sys; from importlib.metadata import entry_points\n"
        "print(grader.MADE_FOR, mini_triton.MADE_FOR, rich.__file__)\n"
        "print([found.value for found in entry_points(group='triton.backends',"
        " name='mini_triton')], 'grader.cli' in sys.modules)\n"
        "import grader.cli"
    )
    done = subprocess.run(
        [prefix / "bin" / "python", "-I", "-c", script], capture_output=True, text=True, check=False
    )
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{tmp_path} {tmp_path} {prefix}/")
    assert second == "['mini_triton.backend'] False"
    # Nothing of the repository comes in by its editable installation.
    assert "No module named 'grader.cli'" in done.stderr


def test_it_needs_an_environment_with_the_project(tmp_path: Path) -> None:
    with pytest.raises(BorrowError, match="no virtual environment"):
        borrow(tmp_path, tmp_path / "prefix", house.here().root)
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    with pytest.raises(BorrowError, match="not installed in"):
        borrow(tmp_path / "bare", tmp_path / "prefix", house.here().root)
    assert not (tmp_path / "prefix").exists()
