from pathlib import Path

import pytest

from grader.authoring import overlay as overlays
from grader.authoring.markers import AuthoringError
from grader.authoring.overlay import Variant
from grader.house import House
from grader.manifest import Assignment


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
        ("x = 1\ny = 1\n", "replaces what softmax.py and masks.py define; say which"),
        ("z = 1\n", "replaces nothing of solutions/softmax/softmax.py, which has x"),
    ],
)
def test_a_variant_of_several_files_or_of_none(tree: Tree, source: str, what: str) -> None:
    path = tree.put("right_a.py", "Says.")
    path.write_text(f'"""Says."""\n{source}', encoding="utf-8")
    with pytest.raises(AuthoringError, match=rf"^tests/variants/softmax/right_a\.py, .*{what}"):
        overlays.apply(several(tree), overlays.describe(path), tree.house)


def test_a_variant_may_say_which_file_it_is_of(tree: Tree) -> None:
    path = tree.put("right_a.py", "Says.")
    path.write_text('"""Says.\n\nfile: masks.py\n"""\ny = 2\n', encoding="utf-8")
    variant = overlays.describe(path)
    assert variant.file == "masks.py"
    file, files = overlays.apply(several(tree), variant, tree.house)
    assert (file, files) == ("masks.py", {"softmax.py": "x = 0\n", "masks.py": "y = 2\n"})


def test_a_variant_of_a_file_that_is_not_declared(tree: Tree) -> None:
    path = tree.put("right_a.py", "Says.")
    path.write_text('"""Says.\n\nfile: other.py\n"""\ny = 2\n', encoding="utf-8")
    with pytest.raises(AuthoringError, match=r"`file: other\.py`; the manifest has softmax\.py"):
        overlays.variants(tree.assignment, tree.house)


def test_files_that_import_a_changed_one_are_affected() -> None:
    files = {
        "a.py": "x = 1\n",
        "b.py": "from a import x\n",
        "c.py": "def f():\n    import b\n",
        "d.py": "import math\n",
    }
    assert overlays.affected("a.py", files) == {"a.py", "b.py", "c.py"}
    assert overlays.affected("c.py", files) == {"c.py"}
