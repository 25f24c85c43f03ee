"""What students begin with: every test is not started, whichever half of a task is still a stub."""

import pytest

from grader import house
from grader.authoring import splice, starter
from grader.verdict import Verdict
from tests.assignments.definitions import definitions
from tests.assignments.in_process import ASSIGNMENTS, grade, of_each

STARTERS = {
    name: {str(path): text for path, text in starter.generate(assignment).items()}
    for name, assignment in ASSIGNMENTS.items()
}
of_each_file = pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name in ASSIGNMENTS for file in ASSIGNMENTS[name].files]
)


def kernels(text: str) -> dict[str, str]:
    """The Triton kernels of a file that are still to be written."""
    return {
        name: source
        for name, source in definitions(text).items()
        if "@triton" in source and "raise NotImplementedError(" in source
    }


def solution(name: str, file: str) -> str:
    return (house.solution(name) / file).read_text(encoding="utf-8")


@of_each
def test_the_declared_files(assignment):
    assert set(assignment.files) <= set(STARTERS[assignment.name])


@of_each
def test_everything_is_not_started(assignment, tmp_path):
    """In this process, as students run it, and with the words of the task's own stub."""
    for file, text in STARTERS[assignment.name].items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    results = grade(assignment, tmp_path)
    assert len(results) == len(list(assignment.tests()))
    for result in results:
        assert result.verdict is Verdict.NOT_STARTED, result
        assert f"{assignment.name} {result.task}: " in result.message


@of_each_file
def test_kernels_still_to_be_written_are_not_started(name, file, tmp_path):
    """The launchers of the solution upon the kernels of the starter."""
    stubs = kernels(STARTERS[name][file])
    assert bool(stubs) == ("@triton.jit" in solution(name, file))
    if not stubs:
        return
    text = splice.overlay(solution(name, file), "\n\n\n".join(stubs.values()))
    (tmp_path / file).write_text(text, encoding="utf-8")
    assignment = ASSIGNMENTS[name]
    tasks = [task for task in assignment.tasks if assignment.file_of(task) == file]
    results = grade(assignment, tmp_path, numbers=[t.number for task in tasks for t in task.tests])
    assert {result.verdict for result in results} == {Verdict.NOT_STARTED}


@of_each_file
def test_definitions_without_a_block_are_the_solutions(name, file):
    given = {
        key: source
        for key, source in definitions(STARTERS[name][file]).items()
        if "raise NotImplementedError(" not in source
    }
    assert given.items() <= definitions(solution(name, file)).items()
