"""The script that grades a submission, with graders that fail in every way a program can fail.

A small shell script stands for Python and its grader: it does what the environment variable of the
test says. (The real ones run in `test_check`.)
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grader.gradescope.build import template

BEFORE = {"score": 0, "tests": [{"number": "1.1", "output": "grading did not begin"}]}
PARTIAL = {"score": 3, "tests": [{"number": "1.1", "output": "passed"}]}


class Container:
    """An /autograder whose grader is given as shell text; `$results` is its results.json."""

    def __init__(self, folder: Path) -> None:
        self.root, self.prefix = folder / "autograder", folder / "opt"
        (self.root / "source").mkdir(parents=True)
        (self.root / "submission").mkdir()
        (self.root / "source" / "before.json").write_text(json.dumps(BEFORE))
        (self.root / "source" / "settings.sh").write_text("ASSIGNMENT=lab\nSECONDS_AT_MOST=60\n")
        script = self.root / "run_autograder"
        script.write_text(template("run_autograder"))
        script.chmod(0o755)

    def grader(self, text: str) -> None:
        """Scripts on standard input are run by a real Python, `-m grader` is the given text."""
        python = self.prefix / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(
            f'#!/bin/bash\n[ "$2" = - ] && exec "{sys.executable}" "$@"\n'
            f'results="{self.results}"\n{text}\n'
        )
        python.chmod(0o755)

    @property
    def results(self) -> Path:
        return self.root / "results" / "results.json"

    def run(self, **environment: str) -> tuple[str, Any]:
        """Runs the script; what it printed, and results.json."""
        done = subprocess.run(
            [self.root / "run_autograder"],
            env={
                "PATH": "/usr/bin:/bin",
                "AUTOGRADER_ROOT": str(self.root),
                "BYTEWISE_PREFIX": str(self.prefix),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert [path.name for path in self.results.parent.iterdir()] == ["results.json"]
        return done.stdout, json.loads(self.results.read_text())


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


WRITE_PARTIAL = f"echo '{json.dumps(PARTIAL)}' >$results"


def test_a_grader_that_works(container: Container) -> None:
    container.grader(f'echo "asked: $*"; {WRITE_PARTIAL}')
    printed, results = container.run()
    assert results == PARTIAL
    assert f"asked: -I -m grader grade lab {container.root}/submission --json " in printed
    assert "FAILED" not in printed


def test_there_are_results_from_the_first_moment(container: Container) -> None:
    container.grader("cat $results; exit 3")
    printed, results = container.run()
    assert json.dumps(BEFORE) in printed
    assert results == BEFORE
    assert "THE GRADER FAILED on some tests" in printed


def test_a_grader_that_crashes_keeps_what_it_had(container: Container) -> None:
    container.grader(f"{WRITE_PARTIAL}; kill -SEGV $$")
    printed, results = container.run()
    assert results == PARTIAL
    assert "THE GRADER FAILED with status 139" in printed


def test_a_grader_that_hangs_is_stopped_and_keeps_what_it_had(container: Container) -> None:
    container.grader(f"{WRITE_PARTIAL}; sleep 50")
    printed, results = container.run(BYTEWISE_SECONDS="1")
    assert results == PARTIAL
    assert re.search(r"stopped after \d s, in time for Gradescope's limit", printed)


def test_a_grader_that_cannot_even_be_asked_to_stop(container: Container) -> None:
    container.grader(f"trap '' TERM; {WRITE_PARTIAL}; while :; do sleep 1; done")
    printed, results = container.run(BYTEWISE_SECONDS="1")
    assert results == PARTIAL
    assert re.search(r"stopped after 1\d s", printed)


def test_a_grader_that_the_system_kills(container: Container) -> None:
    container.grader(f"{WRITE_PARTIAL}; kill -KILL $$")
    printed, results = container.run()
    assert results == PARTIAL
    assert "most likely because memory ran out" in printed


@pytest.mark.parametrize(
    "left",
    [
        'echo \'{"score": 1, "tests": [\' >$results',
        ": >$results",
        "rm $results",
        'echo \'{"score": NaN, "tests": [1]}\' >$results',
        'echo \'{"score": 1, "tests": []}\' >$results',
        'echo \'{"score": "5", "tests": [1]}\' >$results',
        "printf '\\xff\\xfe' >$results",
    ],
)
def test_no_invalid_results_are_left(container: Container, left: str) -> None:
    container.grader(left)
    printed, results = container.run()
    assert results == BEFORE
    assert "it left no valid results.json" in printed


def test_without_python(container: Container) -> None:
    printed, results = container.run()
    assert results == BEFORE
    assert "THE GRADER FAILED: there is no" in printed


def test_the_environment_is_clean_and_names_the_student(container: Container) -> None:
    container.grader(f"env; {WRITE_PARTIAL}")
    (container.prefix / "student.uid").write_text("12345\n")
    printed, _ = container.run(PYTHONPATH="/evil", LD_PRELOAD="", TORCH_LOGS="all", HOME="/root")
    lines = printed.splitlines()
    assert "BYTEWISE_UID=12345" in lines
    names = {line.partition("=")[0] for line in lines if "=" in line}
    assert names <= {"PATH", "LANG", "HOME", "TMPDIR", "BYTEWISE_UID", "PWD", "SHLVL", "_"}


def test_it_reads_nothing_from_standard_input(container: Container) -> None:
    container.grader(f'read -r line && echo "read $line"; {WRITE_PARTIAL}')
    printed, results = container.run()
    assert "read " not in printed
    assert results == PARTIAL


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (
            '{"id": 7, "created_at": "2026-01-01", "users": [{"name": "Ada"}, {"name": "Bob"}]}',
            "submission 7 of 2026-01-01, by Ada, Bob",
        ),
        ("{}", "submission ? of ?, by ?"),
        ("[1, 2]", "cannot be read"),
        ("no json", "cannot be read"),
        (None, "no submission_metadata.json"),
    ],
)
def test_metadata_are_only_printed(container: Container, metadata: str | None, said: str) -> None:
    container.grader(WRITE_PARTIAL)
    if metadata is not None:
        (container.root / "submission_metadata.json").write_text(metadata)
    printed, results = container.run()
    assert said in printed
    assert results == PARTIAL
