"""Runs pytest on a small assignment, as a student does."""

import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from grader import house as houses

TEST = '''
from gradescope_utils.autograder_utils.decorators import number
from grader.testing import AssignmentTestCase

class TestToy(AssignmentTestCase):
    @number("1.1")
    def test_double(self):
        """y = 2x"""
        x = self.randn(5)
        self.assert_close("y", self.student.call("double", x).value, 2 * x.double())
'''

MANIFEST = """
name = "toy"
title = "Doubling"
files = ["toy.py"]
seed = 5
[[tasks]]
id = "1"
title = "Double"
tests = [{ number = "1.1", points = 3, test = "public/test_toy.py::TestToy::test_double" }]
"""


@pytest.fixture
def house(tmp_path):
    for file, text in {
        "assignments/toy/assignment.toml": MANIFEST,
        "assignments/toy/public/test_toy.py": TEST,
        "grader/house.py": Path(houses.__file__).read_text(),  # what marks a tree
        "starter/toy/toy.py": 'def double(x):\n    raise NotImplementedError("toy 1: double it")\n',
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(house, *arguments, source=None):
    if source is not None:
        (house / "mine").mkdir(exist_ok=True)
        (house / "mine/toy.py").write_text(textwrap.dedent(source))
        arguments = ("--submission", "mine", *arguments)
    command = [sys.executable, "-m", "pytest", "-p", "grader.testing.pytest_plugin", "-rs"]
    done = subprocess.run(
        [*command, "--import-mode=importlib", "assignments/toy/public", *arguments],
        cwd=house,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_starter_is_skipped_with_its_reason(house):
    text = run(house)
    assert "1 skipped" in text
    assert "not started: toy 1: double it" in text


def test_a_right_submission_passes(house):
    assert "1 passed" in run(house, source="def double(x): return x * 2")


def test_a_failure_shows_the_message_and_no_harness(house):
    text = run(house, source="def double(x): return x * 3")
    assert "1 failed" in text
    assert "y is wrong: 5 of 5 elements are off" in text
    assert "every element is 1.5 times what it should be" in text
    assert "  in double((5,))\n\n  asked for at test_toy.py:10, with seed 5" in text
    assert "case.py" not in text


def test_an_exception_shows_the_students_lines(house):
    text = run(house, source="def double(x):\n    return x.nothing")
    assert "toy.py:2 in double\n    return x.nothing" in text
    assert "running.py" not in text


def test_another_seed_gives_other_inputs(house):
    source = "def double(x):\n    print('first', float(x[0]))\n    return x * 2"
    printed = {
        next(line for line in run(house, "-s", *seed, source=source).split("\n") if "first" in line)
        for seed in ((), ("--seed", "6"))
    }
    assert len(printed) == 2


def test_a_zip_is_read(house):
    with zipfile.ZipFile(house / "mine.zip", "w") as archive:
        archive.writestr("nested/toy.py", "def double(x): return x * 2")
    assert "1 passed" in run(house, "--submission", "mine.zip")


def test_what_cannot_be_read_is_said(house):
    (house / "empty").mkdir()
    text = run(house, "--submission", "empty")
    assert "1 failed" in text
    assert re.search(r"toy\.py .*\n\n  asked for at", text), text


def test_files_that_are_there_are_tested_without_the_others(house):
    manifest = house / "assignments/toy/assignment.toml"
    manifest.write_text(manifest.read_text().replace('["toy.py"]', '["toy.py", "more.py"]'))
    text = run(house, source="def double(x): return x * 2")
    assert "1 passed" in text


HANGS = "def double(x):\n    while True:\n        x = x + 1\n"


def test_a_call_without_end_is_stopped_and_says_where_it_was(house):
    manifest = house / "assignments/toy/assignment.toml"
    manifest.write_text(manifest.read_text().replace("points = 3,", "points = 3, time_limit = 2,"))
    text = run(house, source=HANGS)
    assert "1 failed" in text
    assert "TestToy.test_double" in text
    assert re.search(
        r"toy\.py:\d in double\n    (while True:|x = x \+ 1)\nno result after 2 s, in double\n\n"
        r"  asked for at test_toy.py:10, with seed 5",
        text,
    )
    assert "running.py" not in text


def test_a_limit_that_is_asked_for_goes_before(house):
    assert "no result after 1 s, in double" in run(house, "--timeout=1", source=HANGS)


def test_an_import_without_end_is_waited_for_once(house):
    path = house / "assignments/toy/public/test_toy.py"
    again = path.read_text()[path.read_text().index("    @number") :].replace("1.1", "1.2")
    path.write_text(path.read_text() + again.replace("test_double", "test_again"))
    manifest = house / "assignments/toy/assignment.toml"
    more = ', { number = "1.2", points = 1, test = "public/test_toy.py::TestToy::test_again" } ]'
    manifest.write_text(manifest.read_text().replace(" ]\n", more + "\n"))
    text = run(house, "--timeout=2", source="print('once more')\nwhile True: pass\n")
    assert "2 failed" in text
    assert text.count("once more") == 1
    assert "toy.py:2\n    while True: pass\nno result after 2 s, while toy.py was imported" in text
    assert re.search(r"toy\.py was not imported again: that had no end in test 1\.[12]\n", text)


def test_a_check_without_end_is_said_to_be_one(house):
    path = house / "assignments/toy/public/test_toy.py"
    path.write_text(path.read_text() + "        while True: pass\n")
    text = run(house, "--timeout=1", source="def double(x): return x * 2")
    assert "no result after 1 s: the test was still checking what came of the calls" in text


def test_a_failure_that_repeats_is_shown_once(house):
    path = house / "assignments/toy/public/test_toy.py"
    again = path.read_text()[path.read_text().index("    @number") :].replace("1.1", "1.2")
    path.write_text(path.read_text() + again.replace("test_double", "test_twice"))
    text = run(house, source="def double(x):\n    return x.nothing")
    assert text.count("has no attribute 'nothing'") == 1
    assert "as test 1.1\n\n  asked for at test_toy.py:" in text


def test_a_rank_without_end_is_stopped_and_says_where_it_was(house):
    path = house / "assignments/toy/public/test_toy.py"
    text = path.read_text().replace("import AssignmentTestCase", "import COMM, AssignmentTestCase")
    body = text[: text.index("        x = self.randn")]
    path.write_text(
        f"{body}        with self.student.ranks(3) as ranks:\n"
        '            ranks.call("double", [(COMM,)] * 3)\n'
    )
    source = """
        import numpy as np

        def double(comm):
            print("rank", comm.ranks[0])
            comm.all_reduce([np.ones(3)])
            while comm.ranks == (1,):
                pass
            comm.all_reduce([np.ones(3)])
    """
    text = run(house, "--timeout=2", source=source)
    assert "rank 0\nrank 1\nrank 2\n" in text
    assert re.search(
        r"toy\.py:\d in double\n    (while comm.ranks == \(1,\):|pass)\n"
        r"no result after 2 s, in double on rank 1, while rank 0 waits in all_reduce\n",
        text,
    ), text
    assert "running.py" not in text
    assert "Stack of" not in text  # of the threads of the other ranks, in files of the grader
    assert "local_ranks.py" not in text
