"""What of this assignment's files is given to students, and works before they write a line."""

import pytest
import torch

from grader import house, manifest
from grader.testing import NotStarted
from grader.testing.local import LocalStudent
from grader.testing.problems import StudentError
from tests.assignments.definitions import definitions

ASSIGNMENT = manifest.load("flash_attention")
STARTER = house.starter("flash_attention")
GIVEN = {
    "attention_kernels.py": ["check_arguments", "scale_of", "in_the_future", "SoftmaxState"],
    "flash_lab.py": ["IO", "check_head", "scale_of", "in_the_future"],
    "flash_triton.py": ["check_arguments", "load_rows", "store_rows"],
}


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file, names in GIVEN.items() for name in names]
)
def test_given_definitions_have_no_block(file, name):
    text = (STARTER / file).read_text(encoding="utf-8")
    assert "raise NotImplementedError(" not in definitions(text)[name]


@pytest.mark.parametrize("name", ["standard_attention", "flash_forward"])
def test_wrong_arguments_are_refused_before_the_stub(name):
    """A student who passes the wrong tensor hears of that, stub or not."""
    student = LocalStudent(STARTER, ASSIGNMENT.files)
    q, k = torch.ones(5, 4), torch.ones(7, 4)
    with pytest.raises(StudentError, match=r"v has shape \(6, 4\)"):
        student.call(name, q, k, torch.ones(6, 4))
    with pytest.raises(NotStarted, match=r"flash_attention [23]: "):
        student.call(name, q, k, k)


@pytest.mark.parametrize(("name", "more"), [("attention_forward", ()), ("attention_decode", (1,))])
def test_wrong_arguments_are_refused_before_the_stub_in_triton(name, more):
    student = LocalStudent(STARTER, ASSIGNMENT.files)
    q, k = torch.ones(1, 4, 5, 8), torch.ones(1, 2, 7, 8)
    with pytest.raises(StudentError, match=r"v has shape \(1, 2, 6, 8\)"):
        student.call(f"flash_triton:{name}", q, k, torch.ones(1, 2, 6, 8), *more)
    with pytest.raises(NotStarted, match=r"flash_attention (9|11): "):
        student.call(f"flash_triton:{name}", q, k, k, *more)
