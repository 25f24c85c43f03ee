import textwrap
from pathlib import Path

import pytest

from grader import house, manifest
from grader.authoring import overlay as overlays
from grader.authoring.markers import AuthoringError
from grader.authoring.overlay import Variant, overlay
from grader.house import House
from grader.manifest import Assignment

SOLUTION = '''\
"""Softmax."""

import torch
import triton

BLOCK = 128
LOW, HIGH = 0, 1


# The kernel.
@triton.jit
@twice
def kernel(x):
    """Docs."""
    # BEGIN SOLUTION softmax 1: one
    return 1
    # END SOLUTION


def softmax(x):
    return kernel(x)  # launched


class Softmax:
    def f(self):
        return 1


TAIL = 1
'''


def spliced(variant: str, solution: str = SOLUTION) -> str:
    return overlay(solution, textwrap.dedent(variant), "softmax.py", "wrong_x.py")


def refusal(variant: str, solution: str = SOLUTION) -> str:
    with pytest.raises(AuthoringError) as refused:
        spliced(variant, solution)
    message = str(refused.value)
    assert message.startswith("wrong_x.py, line ")
    return message


def test_a_function_is_replaced_with_its_decorators_and_nothing_else_changes() -> None:
    made = spliced(
        '''\
        """Says."""

        import triton


        @triton.jit
        def kernel(x):
            return 2  # wrong
        '''
    )
    old = SOLUTION[SOLUTION.index("@triton.jit") : SOLUTION.index("\n\n\ndef softmax")]
    assert made == SOLUTION.replace(old, "@triton.jit\ndef kernel(x):\n    return 2  # wrong")


def test_the_solutions_markers_go_with_what_is_replaced() -> None:
    assert "SOLUTION" not in spliced("def kernel(x):\n    return 2\n")


def test_a_class_and_an_assignment() -> None:
    made = spliced("class Softmax:\n    pass\n\n\nBLOCK = 64  # less\n")
    assert "BLOCK = 64  # less\nLOW, HIGH = 0, 1\n" in made
    assert "class Softmax:\n    pass\n\n\nTAIL = 1\n" in made
    assert "BLOCK = 128" not in made
    assert "def f(self)" not in made


def test_an_annotated_assignment_and_several_names() -> None:
    made = spliced("BLOCK: int = 64\nLOW, HIGH = 2, 3\n")
    assert "BLOCK: int = 64\nLOW, HIGH = 2, 3\n\n\n# The kernel." in made


def test_an_async_function_and_the_last_definition() -> None:
    made = spliced("async def softmax(x):\n    pass\nTAIL = 2")
    assert "async def softmax(x):\n    pass\n\n\nclass Softmax" in made
    assert made.endswith("\n\n\nTAIL = 2\n")


def test_new_definitions_come_before_the_first_replaced_in_their_order() -> None:
    made = spliced(
        """\
        SCALE = 2


        def softmax(x):
            return helper(x)


        @triton.jit
        def helper(x):
            return SCALE


        class Softmax:
            pass
        """
    )
    assert (
        "SCALE = 2\n\n\n@triton.jit\ndef helper(x):\n    return SCALE\n\n\n"
        "def softmax(x):\n    return helper(x)\n\n\nclass Softmax:\n    pass\n" in made
    )
    compile(made, "made", "exec")


def test_new_imports_come_behind_the_solutions() -> None:
    made = spliced(
        "import math\nimport torch\nfrom os import path, sep as s\n\n\ndef softmax(x):\n    pass\n"
    )
    assert made.startswith(
        '"""Softmax."""\n\nimport torch\nimport triton\nimport math\nfrom os import path\n'
        "from os import sep as s\n\nBLOCK = 128\n"
    )


def test_imports_where_the_solution_has_none() -> None:
    made = spliced("import math\ndef f():\n    pass\n", '"""Docs."""\n\n\ndef f():\n    return 1\n')
    assert made == '"""Docs."""\nimport math\n\n\ndef f():\n    pass\n'


def test_an_import_directly_before_what_is_replaced() -> None:
    made = spliced("import math\nx = 2\nnew = 3\n", "import os\nx = 1\n")
    assert made == "import os\nimport math\nnew = 3\n\n\nx = 2\n"


def test_an_import_of_another_thing_by_the_same_name() -> None:
    message = refusal("import numpy as torch\ndef softmax(x):\n    pass\n")
    assert "line 1: imports 'torch' by `import numpy as torch`" in message
    assert "softmax.py by `import torch`" in message


def test_a_future_import() -> None:
    message = refusal("from __future__ import annotations\ndef softmax(x):\n    pass\n")
    assert "holds for a whole file" in message


def test_an_import_behind_what_is_replaced() -> None:
    assert "has an import behind" in refusal("x = 2\n", "x = 1\nimport os\n")


@pytest.mark.parametrize(
    "variant", ['"""Says."""\n', "def sotfmax(x):\n    pass\n", "import math\n"]
)
def test_a_variant_that_replaces_nothing(variant: str) -> None:
    message = refusal(variant)
    assert "line 1: replaces nothing of softmax.py, which has BLOCK, HIGH, LOW, Softmax" in message


def test_a_variant_that_replaces_by_the_same() -> None:
    """Comments, docstrings and layout make no difference."""
    message = refusal("def softmax(x):\n    '''Docs.'''\n    return kernel(\n        x)  # why\n")
    assert "replaces definitions just by the same ones" in message


def test_one_real_difference_is_enough() -> None:
    assert "TAIL = 2" in spliced("def softmax(x):\n    return kernel(x)\n\n\nTAIL = 2\n")


def test_a_name_of_several() -> None:
    message = refusal("def softmax(x):\n    pass\n\n\nLOW = 3\n")
    assert "line 5: 'LOW' is assigned together with other names in softmax.py" in message


def test_a_name_defined_twice() -> None:
    assert "line 3: 'softmax' is defined twice" in refusal(
        "def softmax(x):\n    pass\ndef softmax(x):\n    return 1\n"
    )


@pytest.mark.parametrize(
    "line", ["print(1)", "x[0] = 1", "BLOCK += 1", "if 1:\n    y = 2", "del BLOCK", "'a string'"]
)
def test_anything_else_at_top_level(line: str) -> None:
    message = refusal(f"def softmax(x):\n    pass\n\n\n{line}\n")
    assert "line 5: is neither an import nor the definition" in message


def test_a_variant_that_is_not_python() -> None:
    assert "line 2: is not Python" in refusal("x = 1\ny = = 2\n")


def test_a_solution_that_is_not_python() -> None:
    with pytest.raises(AuthoringError, match=r"^softmax\.py, line 1: is not Python"):
        overlay("x = = 1", "x = 2", "softmax.py")


class Tree:
    def __init__(self, root: Path) -> None:
        self.house = House(root)
        (root / "assignments" / "softmax").mkdir(parents=True)
        (root / "assignments" / "softmax" / "assignment.toml").touch()
        self.folder = self.house.variants("softmax")
        self.folder.mkdir(parents=True)
        test = "public/test_a.py::TestA::test_a"
        self.assignment = Assignment.model_validate(
            {
                "name": "softmax",
                "title": "Softmax",
                "files": ["softmax.py"],
                "tasks": [
                    {
                        "id": task,
                        "title": "A task",
                        "tests": [{"number": f"{task}.1", "test": f"{test}{task}", "points": 1}],
                    }
                    for task in "123"
                ],
            }
        )

    def put(self, name: str, docstring: str) -> Path:
        path = self.folder / name
        path.write_text(f'"""{docstring}"""\n\nx = 1\n', encoding="utf-8")
        return path

    def refusal(self, name: str, docstring: str) -> str:
        self.put(name, docstring)
        with pytest.raises(AuthoringError) as refused:
            overlays.variants(self.assignment, self.house)
        message = str(refused.value)
        assert message.startswith(f"tests/variants/softmax/{name}, line 1: ")
        return message


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_variants_are_listed_right_ones_first(tree: Tree) -> None:
    wrong = tree.put("wrong_b.py", "ε is\nignored.\n\nWhy so.\n\nbreaks: 1, 3\n")
    right = tree.put("right_a.py", "In two passes.")
    (tree.folder / "__pycache__").mkdir()
    found = overlays.variants(tree.assignment, tree.house)
    assert found == [
        Variant("right_a", right, "In two passes.", ()),
        Variant("wrong_b", wrong, "ε is ignored.", ("1", "3")),
    ]
    assert [variant.right for variant in found] == [True, False]


def test_no_variants(tree: Tree) -> None:
    assert overlays.variants(tree.assignment, tree.house) == []


@pytest.mark.parametrize(
    ("name", "docstring", "what"),
    [
        ("wrong_a.py", "Says.", "has no lines `breaks: 1, 3`"),
        ("wrong_a.py", "Says.\n\nbreaks:", "'' in `breaks:` is not a task"),
        ("wrong_a.py", "Says.\n\nbreaks: 1\nbreaks: 2", "has 2 lines `breaks:"),
        ("wrong_a.py", "Says.\n\nbreaks: 1 and 2", "'1 and 2' in `breaks:` is not a task"),
        ("wrong_a.py", "Says.\n\nbreaks: 1,", "'' in `breaks:` is not a task"),
        ("wrong_a.py", "Says.\n\nbreaks: 4", "there is no task '4'; the manifest has 1, 2, 3"),
        ("wrong_a.py", "Says.\n\nbreaks: 1, 1", "names task 1 twice"),
        ("wrong_a.py", "breaks: 1", "does not say what it does"),
        ("wrong_a.py", "", "has no docstring"),
        ("right_a.py", "Says.\n\nbreaks: 1", "is a right one, which breaks nothing"),
        ("rihgt_a.py", "Says.", "is neither a right_*.py nor a wrong_*.py"),
        ("wrong_a.txt", "Says.\n\nbreaks: 1", "is neither a right_*.py nor a wrong_*.py"),
    ],
)
def test_docstrings_and_names_that_are_refused(
    tree: Tree, name: str, docstring: str, what: str
) -> None:
    assert what in tree.refusal(name, docstring)


def several(tree: Tree) -> Assignment:
    """The assignment, with two files that each have a solution."""
    folder = tree.house.solution("softmax")
    folder.mkdir(parents=True)
    (folder / "softmax.py").write_text("x = 0\n", encoding="utf-8")
    (folder / "masks.py").write_text("y = 0\n", encoding="utf-8")
    (folder / "notes.txt").touch()
    return tree.assignment.model_copy(update={"files": ["softmax.py", "masks.py"]})


@pytest.mark.parametrize(
    ("source", "softmax", "masks"),
    [("x = 1\n", "x = 1\n", "y = 0\n"), ("y = 1\n", "x = 0\n", "y = 1\n")],
)
def test_a_variant_is_of_the_file_that_defines_what_it_replaces(
    tree: Tree, tmp_path: Path, source: str, softmax: str, masks: str
) -> None:
    path = tree.put("right_a.py", "Says.")
    path.write_text(f'"""Says."""\n{source}', encoding="utf-8")
    into = tmp_path / "handed" / "in"
    overlays.write(several(tree), overlays.describe(path), into, tree.house)
    assert sorted(file.name for file in into.iterdir()) == ["masks.py", "softmax.py"]
    assert (into / "softmax.py").read_text() == softmax
    assert (into / "masks.py").read_text() == masks


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("x = 1\ny = 1\n", "replaces definitions of softmax.py and of masks.py"),
        ("z = 1\n", "replaces nothing of solutions/softmax/softmax.py, which has x"),
    ],
)
def test_a_variant_of_several_files_or_of_none(tree: Tree, source: str, what: str) -> None:
    path = tree.put("right_a.py", "Says.")
    path.write_text(f'"""Says."""\n{source}', encoding="utf-8")
    with pytest.raises(AuthoringError, match=rf"^tests/variants/softmax/right_a\.py, .*{what}"):
        overlays.apply(several(tree), overlays.describe(path), tree.house)


@pytest.mark.parametrize("name", house.names())
def test_every_variant_of_the_project_makes_a_whole_file(name: str) -> None:
    assignment = manifest.load(name)
    found = overlays.variants(assignment)
    assert {variant.right for variant in found} == {True, False}
    for variant in found:
        for file, text in overlays.apply(assignment, variant).items():
            compile(text, f"{variant.name}/{file}", "exec")
