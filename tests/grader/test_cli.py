"""The command line in a process of its own, on the real assignment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader import house
from grader.report import gradescope

ROOT = house.here().root


def grader(*arguments, cwd=ROOT):
    return subprocess.run(
        [sys.executable, "-m", "grader", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_grading_writes_all_reports(tmp_path):
    json_path, html_path = tmp_path / "r.json", tmp_path / "r.html"
    done = grader(
        "grade",
        "rmsnorm",
        "solutions/rmsnorm",
        "--json",
        json_path,
        "--html",
        html_path,
        "--only",
        "1",
        "--seed",
        "7",
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(json_path.read_text())
    gradescope.validate(content)
    assert content["score"] == content["extra_data"]["max_score"] > 0
    assert content["extra_data"]["seed"] == 7
    assert "30 of 30 points" in html_path.read_text()
    assert "\x1b[" not in done.stdout
    assert "The forward kernel" in done.stdout


def test_a_bad_submission_is_no_error(tmp_path):
    (tmp_path / "rmsnorm.py").write_text("def (:")
    done = grader("grade", "rmsnorm", tmp_path, "--only", "2", "--json", tmp_path / "r.json")
    assert done.returncode == 0
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["score"] == 0
    assert {test["extra_data"]["verdict"] for test in content["tests"]} == {"import error"}


def test_in_process(tmp_path):
    (tmp_path / "rmsnorm.py").write_text("def rmsnorm_forward(x, g, eps):\n    return x[99, 99]\n")
    done = grader("grade", "rmsnorm", tmp_path, "--only", "1", "--in-process")
    assert done.returncode == 0
    assert "rmsnorm.py:2 in rmsnorm_forward" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("grade", "nothing", "."), "no assignment 'nothing'"),
        (("grade", "rmsnorm", "no/such/path"), "does not exist"),
        (("grade", "rmsnorm", ".", "--only", "17"), "no task '17'; there are 1, 2, 3, 4"),
        (("grade", "rmsnorm", ".", "--seed", "-1"), "--seed"),
        (("grade",), "Missing argument"),
        (("no-such-command",), "No such command"),
    ],
)
def test_usage_mistakes(arguments, complaint):
    done = grader(*arguments)
    assert done.returncode == 2
    assert complaint in " ".join(done.stderr.replace("│", " ").split())


def test_a_broken_test_is_the_graders_error(tmp_path):
    """A house with the grader's code and one assignment whose test is broken."""
    for file, text in {
        "assignments/toy/assignment.toml": 'name = "toy"\ntitle = "T"\nfiles = ["toy.py"]\n'
        '[[tasks]]\nid = "1"\ntitle = "One"\n'
        'tests = [{ number = "1.1", points = 1, test = "public/test_toy.py::TestToy::test_it" }]\n',
        "assignments/toy/public/test_toy.py": "import nowhere_at_all\n",
        "toy.py": "x = 1\n",
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "grader").symlink_to(ROOT / "grader")
    program = (
        "import grader.house as h, sys; from pathlib import Path; "
        "h.here = lambda: h.House(Path.cwd()); "
        "from grader.cli import main; sys.argv[0] = 'grader'; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "grade", "toy", "toy.py", "--json", "r.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the grader failed on 1.1" in done.stderr
    content = json.loads(Path(tmp_path / "r.json").read_text())
    assert content["tests"][0]["extra_data"]["verdict"] == "grader error"
    assert "nowhere_at_all" not in json.dumps(content)


def test_help_is_quick_to_import():
    code = "import sys, grader.cli; assert 'torch' not in sys.modules, 'torch'"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
