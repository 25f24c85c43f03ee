import json
import re
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import house, manifest
from grader.cli import main
from grader.gradescope.build import build
from grader.gradescope.rehearsal import unpack
from grader.house import House
from grader.report import gradescope

HOUSE = house.here()
RMSNORM = manifest.load("rmsnorm")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TORCH_INDEX_URL", raising=False)
        return build(RMSNORM, to=tmp_path_factory.mktemp("dist") / "rmsnorm.zip")


@pytest.fixture(scope="module")
def tree(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    unpack(archive, folder)
    return folder


def settings(tree: Path) -> dict[str, str]:
    """What a shell makes of settings.sh."""
    names = ("ASSIGNMENT", "TORCH", "BUILT_WITH_TORCH_INDEX_URL", "SECONDS_AT_MOST")
    script = f". '{tree}/settings.sh'; " + "".join(f'printf "%s\\0" "${name}";' for name in names)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return dict(zip(names, done.stdout.split("\0"), strict=False))


def test_the_scripts_are_at_the_root_and_executable(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for name in ("setup.sh", "run_autograder"):
            mode = opened.getinfo(name).external_attr >> 16
            assert mode == stat.S_IFREG | 0o755, name
            assert opened.read(name).startswith(b"#!/usr/bin/env bash\n"), name


def test_what_is_in_it(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = set(opened.namelist())
    tests = {
        f"{'tests/hidden/rmsnorm' if test.hidden else 'assignments/rmsnorm/public'}/{test.file}"
        for test in RMSNORM.tests()
    }
    assert names >= tests | {
        "pyproject.toml",
        "assignments/rmsnorm/assignment.toml",
        "assignments/rmsnorm/oracle.py",
        "grader/judge/supervisor.py",
        "grader/report/results.schema.json",
        "shared/console/__init__.py",
        "shared/mini_triton/backend/driver.py",
    }
    assert not [
        name
        for name in names
        if re.match(
            r"solutions|starter|tests/(?!hidden/rmsnorm/)|grader/(authoring|gradescope)", name
        )
        or "__pycache__" in name
    ]


def test_its_packages_can_be_installed(tree: Path) -> None:
    text = (tree / "pyproject.toml").read_text()
    listed = re.findall(r'^    "((?:console|grader|mini_triton)[a-z_.]*)",$', text, re.MULTILINE)
    assert {"console", "grader.judge"} <= set(listed)
    for package in listed:
        base = tree if package.startswith("grader") else tree / "shared"
        assert (base / package.replace(".", "/") / "__init__.py").is_file(), package


def test_the_manifest_loads_from_it(tree: Path) -> None:
    assert manifest.load("rmsnorm", House(tree)) == RMSNORM


def test_it_is_the_same_every_time(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCH_INDEX_URL", raising=False)
    assert build(RMSNORM, to=tmp_path / "x.zip").read_bytes() == archive.read_bytes()


def test_results_before_anything_is_graded(tree: Path) -> None:
    content = json.loads((tree / "before.json").read_text())
    gradescope.validate(content)
    assert content["score"] == 0
    assert [test["number"] for test in content["tests"]] == [t.number for t in RMSNORM.tests()]
    assert {test["score"] for test in content["tests"]} == {0}
    assert {test["extra_data"]["verdict"] for test in content["tests"]} == {"grader error"}
    assert "THE GRADER FAILED" in content["output"]


def test_settings(tree: Path) -> None:
    assert settings(tree) == {
        "ASSIGNMENT": "rmsnorm",
        "TORCH": "torch==2.13.0",
        "BUILT_WITH_TORCH_INDEX_URL": "",
        "SECONDS_AT_MOST": "570",
    }


def test_it_remembers_the_index_that_it_was_built_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = "https://example.org/whl/it's cpu?a=$(touch pwned)&b"
    monkeypatch.setenv("TORCH_INDEX_URL", index)
    unpack(build(RMSNORM, to=tmp_path / "x.zip"), tmp_path / "tree")
    assert settings(tmp_path / "tree")["BUILT_WITH_TORCH_INDEX_URL"] == index


def test_no_project_path_of_this_machine_is_in_it(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            assert str(HOUSE.root).encode() not in opened.read(name), name


def test_the_command() -> None:
    result = CliRunner().invoke(main, ["gradescope", "rmsnorm"])
    assert result.exit_code == 0, result.output
    assert result.stdout == "upload dist/gradescope/rmsnorm.zip\n"
    assert zipfile.is_zipfile(HOUSE.root / "dist" / "gradescope" / "rmsnorm.zip")
