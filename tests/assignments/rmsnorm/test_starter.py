"""What students begin with: every test is not started, whichever half of a task is still a stub."""

import ast

import pytest

from grader import manifest
from grader.authoring import starter
from tests.assignments.rmsnorm.in_process import HOUSE

STARTER = starter.generate(manifest.load("rmsnorm"))
(TEXT,) = STARTER.values()


def test_the_one_declared_file():
    assert [str(path) for path in STARTER] == ["rmsnorm.py"]


def test_everything_is_not_started(run, tmp_path):
    (tmp_path / "rmsnorm.py").write_text(TEXT)
    outcomes = run(tmp_path)
    assert len(outcomes) == 37
    for outcome in outcomes:
        assert outcome.verdict == "not started", outcome
        assert f"rmsnorm {outcome.task}: " in outcome.text


def test_a_kernel_still_to_be_written_is_not_started(run, tmp_path):
    """The launchers of the solution upon the kernels of the starter."""
    solution = (HOUSE / "solutions/rmsnorm/rmsnorm.py").read_text()
    stubs = [
        ast.get_source_segment(TEXT, node)
        for node in ast.parse(TEXT).body
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
    ]
    assert len(stubs) == 3
    kernels = "\n\n\n".join(f"@triton.jit\n{stub}" for stub in stubs)
    (tmp_path / "rmsnorm.py").write_text(f"{solution}\n\n{kernels}\n")
    for outcome in run(tmp_path):
        assert outcome.verdict == "not started", outcome


@pytest.mark.parametrize("name", ["check_arguments", "warps_for"])
def test_given_functions_are_the_solutions(name):
    solution = (HOUSE / "solutions/rmsnorm/rmsnorm.py").read_text()

    def text(source):
        (node,) = (n for n in ast.parse(source).body if getattr(n, "name", None) == name)
        return ast.get_source_segment(source, node)

    assert text(TEXT) == text(solution)


def test_wrong_arguments_are_refused_before_the_stub(tmp_path):
    """A student who passes the wrong tensor hears of that, stub or not."""
    names: dict[str, object] = {}
    tree = ast.parse(TEXT)
    tree.body = [n for n in tree.body if getattr(n, "name", "")[-7:] != "_kernel"]
    exec(compile(tree, "rmsnorm.py", "exec"), names)
    torch = names["torch"]
    with pytest.raises(ValueError, match=r"g has shape \(5,\)"):
        names["rmsnorm_forward"](torch.ones(2, 6), torch.ones(5), 1e-5)
    with pytest.raises(NotImplementedError, match="rmsnorm 1: allocate y and r"):
        names["rmsnorm_forward"](torch.ones(2, 6), torch.ones(6), 1e-5)
