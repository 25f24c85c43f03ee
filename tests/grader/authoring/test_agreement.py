"""The manifest and the test files say the same, and each disagreement is named."""

import pytest

from grader import house, manifest
from grader.authoring.agreement import disagreements
from grader.house import House
from grader.manifest import Assignment

MANIFEST = """
name = "softmax"
title = "Softmax"
files = ["softmax.py", "masks.py"]

[[tasks]]
id = "1"
title = "Forward"
tests = [{ number = "1.1", points = 3, test = "public/test_rows.py::TestRows::test_rows" }]

[[tasks]]
id = "2"
title = "Masks"
file = "masks.py"
tests = [{ number = "2.1", points = 1, test = "public/test_masks.py::TestMasks::test_mask" }]
"""

TEST = '''
from gradescope_utils.autograder_utils.decorators import number, weight
from grader.testing import AssignmentTestCase


class {case}(AssignmentTestCase):
    @weight({points})
    @number("{number}")
    def {method}(self):
        """Title"""
        self.student.call("{call}")
'''

ROWS = {"case": "TestRows", "points": 3, "number": "1.1", "method": "test_rows", "call": "softmax"}
MASKS = {
    "case": "TestMasks",
    "points": 1,
    "number": "2.1",
    "method": "test_mask",
    "call": "masks:causal",
}


@pytest.fixture
def found(tmp_path):
    def check(rows=ROWS, masks=MASKS) -> list[str]:
        public = tmp_path / "assignments/softmax/public"
        public.mkdir(parents=True)
        (tmp_path / "assignments/softmax/assignment.toml").write_text(MANIFEST)
        (public / "test_rows.py").write_text(TEST.format(**rows))
        (public / "test_masks.py").write_text(TEST.format(**masks))
        tree = House(tmp_path)
        assignment: Assignment = manifest.load("softmax", tree)
        return disagreements(assignment, tree)

    return check


def test_agreement(found):
    assert found() == []


def test_a_decorator_that_says_otherwise(found):
    (line,) = found(rows=ROWS | {"points": 2})
    assert line.endswith("test_rows: @weight is 2, in assignment.toml it is 3.0")


def test_a_test_that_is_not_listed(found):
    lines = found(masks=MASKS | {"method": "test_other"})
    assert len(lines) == 2
    assert "test_other is not in assignment.toml, so it is worth nothing" in lines[0]
    assert (
        "assignment.toml lists 2.1, public/test_masks.py::TestMasks::test_mask: no such" in lines[1]
    )


@pytest.mark.parametrize("call", ["masks:causal", "masks:{name}"])  # that of an f-string, too
def test_a_task_that_is_written_in_another_file_than_its_tests_call(found, call):
    (line,) = found(rows=ROWS | {"call": call})
    assert line == (
        "assignments/softmax/public/test_rows.py calls functions of masks.py, but assignment.toml "
        "has its tasks (1) written in softmax.py; correct `file`"
    )


@pytest.mark.parametrize("name", house.names())
def test_every_assignment_of_the_project_agrees(name):
    assert disagreements(manifest.load(name)) == []
