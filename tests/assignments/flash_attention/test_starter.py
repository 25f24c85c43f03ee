"""What students begin with: every test is not started, whichever half of a task is still a stub."""

import ast

import pytest
import torch

from grader.authoring import starter
from grader.testing import NotStarted
from grader.testing.local import LocalStudent
from grader.testing.problems import StudentError
from grader.verdict import Verdict
from tests.assignments.flash_attention.in_process import ASSIGNMENT, HOUSE, grade

STARTER = {str(path): text for path, text in starter.generate(ASSIGNMENT).items()}
SOLUTION = HOUSE / "solutions/flash_attention"
GIVEN = {
    "attention_kernels.py": ["check_arguments", "scale_of", "in_the_future", "SoftmaxState"],
    "flash_lab.py": ["IO", "check_head", "scale_of", "in_the_future"],
    "flash_triton.py": ["check_arguments", "load_rows", "store_rows"],
}


def definition(text: str, name: str) -> str | None:
    """The source of a top-level function or class."""
    (node,) = (node for node in ast.parse(text).body if getattr(node, "name", None) == name)
    return ast.get_source_segment(text, node)


@pytest.fixture
def folder(tmp_path):
    """The starter as a student has it."""
    for file, text in STARTER.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_declared_files():
    assert list(STARTER) == ASSIGNMENT.files


def test_everything_is_not_started(folder):
    results = grade(folder)
    assert len(results) == len(list(ASSIGNMENT.tests()))
    for result in results:
        task = result.number.partition(".")[0]
        assert result.verdict is Verdict.NOT_STARTED, result
        assert f"flash_attention {task}: " in result.message


def test_kernels_still_to_be_written_are_not_started(tmp_path):
    """The launchers of the solution upon the kernels of the starter."""
    text = STARTER["flash_triton.py"]
    kernels = [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
    ]
    assert len(kernels) == 6
    solution = (SOLUTION / "flash_triton.py").read_text(encoding="utf-8")
    for name in kernels:
        solution = solution.replace(str(definition(solution, name)), str(definition(text, name)))
    (tmp_path / "flash_triton.py").write_text(solution, encoding="utf-8")
    results = grade(tmp_path, tasks=("9", "10", "11", "12"))
    assert {result.verdict for result in results} == {Verdict.NOT_STARTED}


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file, names in GIVEN.items() for name in names]
)
def test_given_definitions_are_the_solutions(file, name):
    solution = (SOLUTION / file).read_text(encoding="utf-8")
    assert definition(STARTER[file], name) == definition(solution, name)


@pytest.mark.parametrize("name", ["standard_attention", "flash_forward"])
def test_wrong_arguments_are_refused_before_the_stub(folder, name):
    """A student who passes the wrong tensor hears of that, stub or not."""
    student = LocalStudent(folder, ASSIGNMENT.files)
    q, k = torch.ones(5, 4), torch.ones(7, 4)
    with pytest.raises(StudentError, match=r"v has shape \(6, 4\)"):
        student.call(name, q, k, torch.ones(6, 4))
    with pytest.raises(NotStarted, match=r"flash_attention [23]: "):
        student.call(name, q, k, k)


@pytest.mark.parametrize(("name", "more"), [("attention_forward", ()), ("attention_decode", (1,))])
def test_wrong_arguments_are_refused_before_the_stub_in_triton(folder, name, more):
    student = LocalStudent(folder, ASSIGNMENT.files)
    q, k = torch.ones(1, 4, 5, 8), torch.ones(1, 2, 7, 8)
    with pytest.raises(StudentError, match=r"v has shape \(1, 2, 6, 8\)"):
        student.call(f"flash_triton:{name}", q, k, torch.ones(1, 2, 6, 8), *more)
    with pytest.raises(NotStarted, match=r"flash_attention (9|11): "):
        student.call(f"flash_triton:{name}", q, k, k, *more)
