import shutil
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import house, manifest
from grader.cli import main
from grader.house import House
from grader.submit import SubmitError, submit

HOUSE = house.here()
RMSNORM = manifest.load("rmsnorm")


@pytest.fixture
def zip_path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "rmsnorm.zip"


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_starter_by_default_with_a_warning_for_each_task(zip_path: Path) -> None:
    packed = submit(RMSNORM, to=zip_path)
    assert packed.not_started == ("1", "2", "3", "4")
    assert packed.files == ("rmsnorm.py",)
    starter = (HOUSE.starter("rmsnorm") / "rmsnorm.py").read_bytes()
    assert content(zip_path) == {"rmsnorm.py": starter}


def test_only_declared_files(zip_path: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(HOUSE.solution("rmsnorm"), work)
    for stray in ("notes.txt", "conftest.py", "torch.py", "results.json"):
        (work / stray).write_text("not to be handed in")
    packed = submit(RMSNORM, work, to=zip_path)
    assert packed.not_started == ()
    assert list(content(zip_path)) == ["rmsnorm.py"]


def test_one_task_left(zip_path: Path, tmp_path: Path) -> None:
    solution = (HOUSE.solution("rmsnorm") / "rmsnorm.py").read_text()
    (tmp_path / "rmsnorm.py").write_text(
        solution + "\n\ndef later():\n    raise NotImplementedError('rmsnorm 3.2: later')\n"
        "\n\ndef other():\n    raise NotImplementedError('another lab 1: no stub of this one')\n"
    )
    assert submit(RMSNORM, tmp_path / "rmsnorm.py", to=zip_path).not_started == ("3",)


def test_the_same_work_gives_the_same_zip(zip_path: Path, tmp_path: Path) -> None:
    submit(RMSNORM, to=zip_path)
    first = zip_path.read_bytes()
    work = tmp_path / "copy"
    shutil.copytree(HOUSE.starter("rmsnorm"), work)
    submit(RMSNORM, work, to=zip_path)
    assert zip_path.read_bytes() == first


def test_a_missing_file_is_refused(zip_path: Path, tmp_path: Path) -> None:
    (tmp_path / "norm.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    with pytest.raises(SubmitError, match=r"cannot be handed in yet:\n.*rmsnorm\.py"):
        submit(RMSNORM, tmp_path, to=zip_path)
    assert not zip_path.exists()


def test_a_syntax_error_is_refused_where_it_is_and_the_old_zip_stays(
    zip_path: Path, tmp_path: Path
) -> None:
    submit(RMSNORM, to=zip_path)
    before = zip_path.read_bytes()
    (tmp_path / "rmsnorm.py").write_text("x = 1\ndef f(:\n    pass\n")
    with pytest.raises(SubmitError, match=r"rmsnorm\.py, line 2"):
        submit(RMSNORM, tmp_path / "rmsnorm.py", to=zip_path)
    assert zip_path.read_bytes() == before


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(HOUSE.assignment("rmsnorm"), tree / "assignments" / "rmsnorm")
    shutil.copytree(HOUSE.starter("rmsnorm"), tree / "starter" / "rmsnorm")
    monkeypatch.setattr(house, "here", lambda: House(tree))
    runner = CliRunner()
    result = runner.invoke(main, ["submit", "rmsnorm"])
    assert result.exit_code == 0, result.output
    assert "hand in dist/submit/rmsnorm.zip (rmsnorm.py)" in result.stdout
    assert "not started: task 1, 2, 3, 4" in result.stderr
    assert (tree / "dist" / "submit" / "rmsnorm.zip").is_file()

    (tree / "starter" / "rmsnorm" / "rmsnorm.py").write_text("def f(:\n")
    result = runner.invoke(main, ["submit", "rmsnorm"])
    assert result.exit_code == 1
    assert "line 1" in result.stderr and "Traceback" not in result.output


def test_an_import_that_grading_does_not_have_is_said(zip_path: Path, tmp_path: Path) -> None:
    starter = (HOUSE.starter("rmsnorm") / "rmsnorm.py").read_text()
    path = tmp_path / "rmsnorm.py"
    path.write_text(f"{starter}\n\nimport matplotlib.pyplot as plt\n")
    [absent] = submit(RMSNORM, path, to=zip_path).absent
    line = 2 + len(starter.splitlines()) + 1
    assert str(absent).startswith(
        f"rmsnorm.py, line {line}, imports matplotlib.pyplot, which will fail: there is no module "
        "matplotlib where submissions are graded: they may import Python's own modules, torch, "
        "triton and numpy, what lies in shared (comm_sim, console, "
    )
    assert zip_path.exists()
    assert submit(RMSNORM, HOUSE.solution("rmsnorm"), to=zip_path).absent == ()
