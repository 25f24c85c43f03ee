"""Builds the handout, unpacks it, and works in it as a student would, with its own Makefile."""

import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import house, manifest
from grader.cli import main
from grader.gradescope.borrowed import borrow
from grader.gradescope.rehearsal import unpack
from grader.handout import handout, public_manifest
from grader.house import House

HOUSE = house.here()
RMSNORM = manifest.load("rmsnorm")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handout(RMSNORM, to=tmp_path_factory.mktemp("dist") / "rmsnorm.zip")


@pytest.fixture(scope="module")
def tree(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked handout, with an environment: packages of this one, but a grader of its own."""
    folder = tmp_path_factory.mktemp("student")
    unpack(archive, folder)
    root = folder / "bytewise-rmsnorm"
    borrow(Path(sys.prefix), root / ".venv", root)
    (root / ".venv" / ".ready").touch()
    return root


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def make(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(tree, "make", "--no-print-directory", *arguments)


def test_nothing_of_the_instructors_is_in_it(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = [name.removeprefix("bytewise-rmsnorm/") for name in opened.namelist()]
        text = b"\n".join(opened.read(name) for name in opened.namelist())
    assert not [
        name
        for name in names
        if re.search(r"(^|/)(solutions|tests|hidden|variants|golden|authoring|gradescope)/", name)
    ]
    # Not under another name, either: what only the solution and the hidden tests say is not there.
    for secret in (
        b"BEGIN " + b"SOLUTION",
        *(f"class {test.case}".encode() for test in RMSNORM.tests() if test.hidden),
        *(test.reference.encode() for test in RMSNORM.tests() if test.hidden),
    ):
        assert secret not in text, secret


def test_the_readme_promises_what_every_report_has(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        text = opened.read("bytewise-rmsnorm/README.md").decode()
    assert "dist/report.html: every test, and what it measured" in text
    assert "line by line" not in text


def test_all_that_a_student_needs_is_in_it(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = {name.removeprefix("bytewise-rmsnorm/") for name in opened.namelist()}
        makefile = opened.read("bytewise-rmsnorm/Makefile")
    assert names >= {
        "README.md",
        "LICENSE",
        "pyproject.toml",
        "assignments/rmsnorm/README.md",
        "assignments/rmsnorm/assignment.toml",
        "starter/rmsnorm/rmsnorm.py",
        "shared/console/__init__.py",
        "shared/mini_triton/__init__.py",
        "grader/cli.py",
        *(f"assignments/rmsnorm/public/{test.file}" for test in RMSNORM.tests() if not test.hidden),
    }
    assert makefile == (HOUSE.root / "Makefile").read_bytes()


def test_it_is_the_same_every_time(archive: Path, tmp_path: Path) -> None:
    assert handout(RMSNORM, to=tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_its_manifest_has_the_public_tests_as_they_were(tree: Path) -> None:
    loaded = manifest.load("rmsnorm", House(tree))
    assert list(loaded.tests()) == [test for test in RMSNORM.tests() if not test.hidden]
    assert (loaded.files, loaded.seed, loaded.title) == (RMSNORM.files, RMSNORM.seed, RMSNORM.title)
    assert (loaded.time_limit, loaded.memory_limit_mb) == (
        RMSNORM.time_limit,
        RMSNORM.memory_limit_mb,
    )
    hidden = sum(test.points for test in RMSNORM.tests() if test.hidden)
    assert f"the other {hidden:g} of 100 points" in public_manifest(RMSNORM)


def test_its_packages_can_be_installed(tree: Path) -> None:
    """Every package that its pyproject.toml lists is there, and no other."""
    text = (tree / "pyproject.toml").read_text()
    listed = set(
        re.findall(r'^    "((?:console|grader|mini_triton)[a-z_.]*)",$', text, re.MULTILINE)
    )
    there = {
        path.parent.relative_to(base).as_posix().replace("/", ".")
        for base in (tree, tree / "shared")
        for package in ("console", "grader", "mini_triton")
        for path in (base / package).rglob("__init__.py")
    }
    assert listed == there


def test_make_test_runs_the_handouts_own_packages_and_skips_what_is_not_started(
    tree: Path,
) -> None:
    packages = "console, grader, mini_triton"
    where = f"import {packages}; print(*(p.__file__ for p in ({packages})))"
    found = run(tree, ".venv/bin/python", "-c", where).stdout.split()
    assert len(found) == 3 and all(Path(file).is_relative_to(tree) for file in found), found

    done = make(tree, "test", "A=rmsnorm")
    assert done.returncode == 0, done.stdout + done.stderr
    public = sum(not test.hidden for test in RMSNORM.tests())
    assert f"{public} skipped" in done.stdout
    for task in RMSNORM.task_ids:
        assert f"not started: rmsnorm {task}: " in done.stdout


def test_make_test_passes_with_the_solution(tree: Path) -> None:
    """And another submission can be named."""
    done = make(tree, "test", "A=rmsnorm", f"SUBMISSION={HOUSE.solution('rmsnorm')}")
    public = sum(not test.hidden for test in RMSNORM.tests())
    assert f"{public} passed" in done.stdout, done.stdout + done.stderr


def test_the_assignments_own_python_commands_run_in_its_environment(tree: Path) -> None:
    text = (tree / "assignments/rmsnorm/README.md").read_text()
    commands = re.findall(r"^    ((?:source|python) .*?)(?:  +#.*)?$", text, re.MULTILINE)
    assert commands[0] == "source .venv/bin/activate"
    assert commands[0] in (tree / "README.md").read_text()
    path = f"{tree / '.venv/bin'}:{os.environ['PATH']}"
    for command in commands[1:]:
        assert command.startswith("python ")
        done = subprocess.run(
            shlex.split(command.replace("starter/rmsnorm", str(HOUSE.solution("rmsnorm")))),
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_a_notebook_with_spaces_in_its_name_is_tested_and_packed(tree: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    source = (HOUSE.solution("rmsnorm") / "rmsnorm.py").read_text()
    cells = [nbformat.v4.new_code_cell("%%time\n" + source), nbformat.v4.new_code_cell("!ls")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tree / "my work.ipynb")
    done = make(tree, "test", "A=rmsnorm", "SUBMISSION=my work.ipynb")
    public = sum(not test.hidden for test in RMSNORM.tests())
    assert f"{public} passed" in done.stdout, done.stdout + done.stderr
    done = make(tree, "submit", "A=rmsnorm", "SUBMISSION=my work.ipynb")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cell 2, line 1: left out the shell line `!ls`" in done.stdout
    with zipfile.ZipFile(tree / "dist/submit/rmsnorm.zip") as archive:
        assert source in archive.read("rmsnorm.py").decode()


def test_make_report_grades_the_public_tests_alone(tree: Path) -> None:
    done = make(tree, "report", "A=rmsnorm")
    assert done.returncode == 0, done.stdout + done.stderr
    public = sum(test.points for test in RMSNORM.tests() if not test.hidden)
    assert f"0 / {public:g}" in done.stdout
    assert "grader error" not in done.stdout
    assert "<html" in (tree / "dist" / "report.html").read_text()


def test_make_submit(tree: Path) -> None:
    done = make(tree, "submit", "A=rmsnorm")
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(tree / "dist" / "submit" / "rmsnorm.zip") as opened:
        assert opened.namelist() == RMSNORM.files


@pytest.mark.parametrize("target", ["gradescope", "handout"])
def test_the_instructors_targets_say_that_they_are_none_of_a_students(
    tree: Path, target: str
) -> None:
    done = make(tree, target, "A=rmsnorm")
    assert done.returncode != 0
    assert "only the instructors' repository has it" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command() -> None:
    result = CliRunner().invoke(main, ["handout", "rmsnorm"])
    assert result.exit_code == 0, result.output
    assert result.stdout == "hand out dist/handout/rmsnorm.zip\n"
    assert zipfile.is_zipfile(HOUSE.root / "dist" / "handout" / "rmsnorm.zip")
