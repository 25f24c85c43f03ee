import ast
import subprocess
import sys
import textwrap
from pathlib import Path, PurePosixPath

import pytest

from grader import house, manifest
from grader.authoring import starter
from grader.authoring.markers import AuthoringError
from grader.house import House
from grader.manifest import Assignment

SOLUTION = '''\
"""Softmax."""

import math

import torch


def row_max(x: torch.Tensor) -> torch.Tensor:
    """(M, N) → (M,)"""
    return x.amax(-1)


def softmax(x: torch.Tensor, base: float = math.e) -> torch.Tensor:
    """(M, N) → (M, N)"""
    if x.dim() != 2:
        raise ValueError("x must be (M, N)")
    # BEGIN SOLUTION softmax 1: subtract the maximum of each row
    z = x - row_max(x)[:, None]
    e = z.exp()
    return e / e.sum(-1, keepdim=True)
    # END SOLUTION


class Softmax:
    def backward(self, dy):
        for row in dy:
            # BEGIN SOLUTION softmax 2: the product with the Jacobian, without ever forming it: from
            # each row of dy take away its mean under the row of y as weights, and scale what is
            # left by y once more
            row -= 1
            # END SOLUTION
        return dy
'''

STARTER = '''\
"""Softmax."""

import math

import torch


def row_max(x: torch.Tensor) -> torch.Tensor:
    """(M, N) → (M,)"""
    return x.amax(-1)


def softmax(x: torch.Tensor, base: float = math.e) -> torch.Tensor:
    """(M, N) → (M, N)"""
    if x.dim() != 2:
        raise ValueError("x must be (M, N)")
    raise NotImplementedError("softmax 1: subtract the maximum of each row")


class Softmax:
    def backward(self, dy):
        for row in dy:
            raise NotImplementedError(
                "softmax 2: the product with the Jacobian, without ever forming it: from each row "
                "of dy take away its mean under the row of y as weights, and scale what is left by "
                "y once more"
            )
        return dy
'''


def formatted(source: str) -> str:
    """As ruff lays it out, with the line length of the project."""
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "100", "-"]
    return subprocess.run(ruff, input=source, capture_output=True, text=True, check=True).stdout


def strip(source: str, **checks) -> str:
    return starter.strip(textwrap.dedent(source), "softmax.py", **checks)


def test_blocks_become_stubs() -> None:
    assert strip(SOLUTION) == STARTER


def test_what_is_formatted_stays_formatted() -> None:
    assert formatted(SOLUTION) == SOLUTION
    assert formatted(STARTER) == STARTER


def said(source: str) -> str:
    """What the only stub of a starter raises with."""
    [raised] = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise)]
    assert isinstance(raised.exc, ast.Call)
    text = ast.literal_eval(raised.exc.args[0])
    assert isinstance(text, str)
    return text


def one_block(hint: str, depth: int = 1) -> str:
    """A block within as many functions."""
    indent = "    " * depth
    heads = "".join(f"{'    ' * level}def f{level}():\n" for level in range(depth))
    return (
        f"{heads}{indent}# BEGIN SOLUTION softmax 2.1: {hint}\n"
        f"{indent}return 1\n{indent}# END SOLUTION\n"
    )


def test_a_stub_says_which_task() -> None:
    scope: dict = {}
    exec(strip(one_block("return one")), scope)
    with pytest.raises(NotImplementedError, match=r"^softmax 2\.1: return one$"):
        scope["f0"]()


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("length", [*range(20, 110), 150, 300])
def test_hints_of_every_length(depth: int, length: int) -> None:
    hint = ("words of some length " * 20)[: length - 1].strip() + "."
    made = strip(one_block(hint, depth))
    assert max(map(len, made.split("\n"))) <= 100
    assert said(made) == f"softmax 2.1: {hint}"


def test_layout_is_ruffs_for_every_length() -> None:
    """One run of ruff for all lengths."""
    functions = []
    for length in range(20, 320):
        hint = ("words of some length " * 20)[: length - 1].strip() + "."
        functions.append(
            f"def f{length}():\n    # BEGIN SOLUTION softmax 1: {hint}\n    return 1\n"
            "    # END SOLUTION\n"
        )
    made = strip("\n\n".join(functions))
    assert formatted(made) == made


@pytest.mark.parametrize(
    "hint",
    [
        'return "x"',
        "return 'x'",
        """return 'x' or "y\"""",
        r"split at \n and \\",
        "Σ exp(xᵢ) − 日本語",
        "a {brace} and 100% #",
        "w" * 150,
        "ends in a backslash \\",
    ],
)
def test_hints_with_awkward_characters(hint: str) -> None:
    made = strip(one_block(hint))
    assert formatted(made) == made
    assert said(made) == f"softmax 2.1: {hint}"


def test_manifest_is_heeded() -> None:
    with pytest.raises(AuthoringError, match="no task '2'"):
        strip(SOLUTION, task_ids=("1",))
    with pytest.raises(AuthoringError, match="'attention'"):
        strip(SOLUTION, assignment="attention")


class Tree:
    def __init__(self, root: Path) -> None:
        self.house = House(root)
        self.put("solutions/softmax/softmax.py", SOLUTION)
        self.put("solutions/softmax/__pycache__/softmax.cpython-311.pyc", "")
        self.put("assignments/softmax/assignment.toml", "")
        self.assignment = self.declare("softmax.py")

    def put(self, name: str, text: str) -> Path:
        path = self.house.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def declare(self, *files: str, tasks: int = 2) -> Assignment:
        test = "public/test_a.py::TestA::test_a"
        return Assignment.model_validate(
            {
                "name": "softmax",
                "title": "Softmax",
                "files": list(files),
                "tasks": [
                    {
                        "id": str(task),
                        "title": "A task",
                        "tests": [{"number": f"{task}.1", "test": f"{test}{task}", "points": 1}],
                    }
                    for task in range(1, tasks + 1)
                ],
            }
        )

    def starter(self) -> dict[str, str]:
        folder = self.house.starter("softmax")
        return {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
            for path in folder.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_generate_makes_all_files(tree: Tree) -> None:
    tree.put("solutions/softmax/helpers.py", "ONE = 1\n")
    tree.put("solutions/softmax/data/sizes.csv", "M,N\n# BEGIN SOLUTION\n")
    assert starter.generate(tree.assignment, tree.house) == {
        PurePosixPath("softmax.py"): STARTER,
        PurePosixPath("helpers.py"): "ONE = 1\n",
        PurePosixPath("data/sizes.csv"): "M,N\n# BEGIN SOLUTION\n",
    }


def generate_refusal(tree: Tree, assignment: Assignment) -> str:
    with pytest.raises(AuthoringError) as refused:
        starter.generate(assignment, tree.house)
    return str(refused.value)


def test_a_declared_file_that_is_not_there(tree: Tree) -> None:
    message = generate_refusal(tree, tree.declare("softmax.py", "masks.py"))
    assert "solutions/softmax/masks.py, line 1: is not there" in message
    assert "assignments/softmax/assignment.toml declares it" in message


def test_a_declared_file_without_a_block_would_give_the_solution_away(tree: Tree) -> None:
    tree.put("solutions/softmax/masks.py", "ONE = 1\n")
    message = generate_refusal(tree, tree.declare("softmax.py", "masks.py"))
    assert "solutions/softmax/masks.py, line 1: has no block" in message


def test_a_task_without_a_block(tree: Tree) -> None:
    assert "a block for task 3" in generate_refusal(tree, tree.declare("softmax.py", tasks=3))


def test_errors_name_the_file_in_the_tree(tree: Tree) -> None:
    message = generate_refusal(tree, tree.declare("softmax.py", tasks=1))
    assert message.startswith("solutions/softmax/softmax.py, line 27: there is no task '2'")


def test_a_file_that_is_not_text(tree: Tree) -> None:
    (tree.house.root / "solutions/softmax/data.bin").write_bytes(b"\xff")
    assert "data.bin, line 1: is not UTF-8" in generate_refusal(tree, tree.assignment)


def test_diff_of_a_starter_not_yet_made_writes_nothing(tree: Tree) -> None:
    [change] = starter.diff(tree.assignment, tree.house)
    assert (change.path, change.kind) == ("starter/softmax/softmax.py", "new")
    assert "+import torch\n" in change.diff
    assert not tree.house.starter("softmax").exists()


def test_write_then_no_diff(tree: Tree) -> None:
    [change] = starter.write(tree.assignment, tree.house)
    assert change.kind == "new"
    assert tree.starter() == {"softmax.py": STARTER}
    assert starter.diff(tree.assignment, tree.house) == []
    assert starter.write(tree.assignment, tree.house) == []


def test_an_edited_starter(tree: Tree) -> None:
    starter.write(tree.assignment, tree.house)
    tree.put("starter/softmax/softmax.py", STARTER.replace("math.e", "2.0"))
    [change] = starter.diff(tree.assignment, tree.house)
    assert change.kind == "changed"
    assert "-def softmax(x: torch.Tensor, base: float = 2.0)" in change.diff
    assert "+def softmax(x: torch.Tensor, base: float = math.e)" in change.diff
    assert tree.starter() != {"softmax.py": STARTER}
    starter.write(tree.assignment, tree.house)
    assert tree.starter() == {"softmax.py": STARTER}


def test_line_ends_differ(tree: Tree) -> None:
    starter.write(tree.assignment, tree.house)
    path = tree.house.starter("softmax") / "softmax.py"
    path.write_bytes(STARTER.replace("\n", "\r\n").encode())
    assert [change.kind for change in starter.diff(tree.assignment, tree.house)] == ["changed"]


def test_strays_are_named_then_removed(tree: Tree) -> None:
    starter.write(tree.assignment, tree.house)
    tree.put("starter/softmax/old/softmax.py", "x = 1\n")
    tree.put("starter/softmax/__pycache__/x.pyc", "")
    changes = starter.diff(tree.assignment, tree.house)
    assert [(change.path, change.kind) for change in changes] == [
        ("starter/softmax/old/softmax.py", "stray")
    ]
    assert starter.write(tree.assignment, tree.house) == changes
    assert starter.diff(tree.assignment, tree.house) == []


def test_nothing_is_written_if_a_file_cannot_be_made(tree: Tree) -> None:
    tree.put("solutions/softmax/z.py", "# BEGIN SOLUTION\n")
    with pytest.raises(AuthoringError, match=r"z\.py"):
        starter.write(tree.assignment, tree.house)
    assert not tree.house.starter("softmax").exists()


@pytest.mark.parametrize("name", house.names())
def test_every_starter_of_the_project_is_laid_out_as_ruff_would(name: str) -> None:
    made = starter.generate(manifest.load(name))
    for path, text in made.items():
        if path.suffix == ".py":
            assert formatted(text) == text
