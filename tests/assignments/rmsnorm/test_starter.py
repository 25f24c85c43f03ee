"""What of this assignment's file is given to students, and works before they write a line."""

import pytest
import torch

from grader import house
from grader.testing import NotStarted
from grader.testing.local import LocalStudent
from grader.testing.problems import StudentError
from tests.assignments.definitions import definitions

STARTER = house.starter("rmsnorm")


@pytest.mark.parametrize("name", ["check_arguments", "warps_for"])
def test_given_functions_have_no_block(name):
    text = (STARTER / "rmsnorm.py").read_text(encoding="utf-8")
    assert "raise NotImplementedError(" not in definitions(text)[name]


def test_wrong_arguments_are_refused_before_the_stub():
    """A student who passes the wrong tensor hears of that, stub or not."""
    student = LocalStudent(STARTER, ["rmsnorm.py"])
    with pytest.raises(StudentError, match=r"g has shape \(5,\)"):
        student.call("rmsnorm_forward", torch.ones(2, 6), torch.ones(5), 1e-5)
    with pytest.raises(NotStarted, match="rmsnorm 1: allocate y and r"):
        student.call("rmsnorm_forward", torch.ones(2, 6), torch.ones(6), 1e-5)
