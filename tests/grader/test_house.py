import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader import house
from grader.house import House, HouseError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with two assignments, and a folder that is none."""
    (tmp_path / "grader").mkdir()
    (tmp_path / "grader" / "house.py").touch()
    for name in ("softmax", "attention"):
        folder = tmp_path / "assignments" / name
        folder.mkdir(parents=True)
        (folder / "assignment.toml").touch()
    (tmp_path / "assignments" / "notes").mkdir()
    return tmp_path


def test_the_tree_of_this_package() -> None:
    root = Path(house.__file__).resolve().parents[1]
    assert house.here() == House(root)
    assert house.assignment("rmsnorm") == root / "assignments" / "rmsnorm"
    assert house.solution("rmsnorm") == root / "solutions" / "rmsnorm"
    assert house.starter("rmsnorm") == root / "starter" / "rmsnorm"
    assert house.hidden("rmsnorm") == root / "tests" / "hidden" / "rmsnorm"
    assert house.variants("rmsnorm") == root / "tests" / "variants" / "rmsnorm"
    assert "rmsnorm" in house.names()


def test_folders_of_another_tree(tree: Path) -> None:
    there = House(tree)
    assert there.manifest("softmax") == tree / "assignments" / "softmax" / "assignment.toml"
    assert there.public("softmax") == tree / "assignments" / "softmax" / "public"
    assert there.golden("softmax") == tree / "tests" / "golden" / "softmax.json"


def test_names_are_sorted_and_need_a_manifest(tree: Path) -> None:
    assert House(tree).names() == ["attention", "softmax"]


@pytest.mark.parametrize("name", ["sofmax", "notes", "", "../assignments/softmax", "."])
def test_an_unknown_assignment_is_answered_with_those_there_are(tree: Path, name: str) -> None:
    for ask in (House(tree).assignment, House(tree).solution, House(tree).hidden):
        with pytest.raises(HouseError, match="those there are: attention, softmax"):
            ask(name)


def test_a_tree_without_assignments(tmp_path: Path) -> None:
    with pytest.raises(HouseError, match="there are none"):
        House(tmp_path).starter("softmax")


def test_found_from_deep_below(tree: Path) -> None:
    deep = tree / "grader" / "submission" / "archive.py"
    assert house.find(deep) == House(tree.resolve())


def test_no_tree_around(tmp_path: Path) -> None:
    with pytest.raises(HouseError, match="editable"):
        house.find(tmp_path / "site-packages" / "grader" / "house.py")


def test_a_copy_of_the_package_finds_the_tree_it_was_copied_to(tree: Path) -> None:
    """As in the Gradescope zip: the package lies elsewhere, and so does everything else."""
    source = Path(house.__file__).parent
    shutil.copy(source / "__init__.py", tree / "grader")
    shutil.copy(source / "house.py", tree / "grader")
    asked = "from grader import house; print(house.here().root, house.names())"
    code = f"import sys; sys.path.insert(0, {str(tree)!r}); {asked}"
    answer = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == f"{tree.resolve()} ['attention', 'softmax']"


def test_paths_in_messages_are_relative_to_the_root(tree: Path) -> None:
    assert House(tree).relative(tree / "assignments" / "softmax") == "assignments/softmax"
    assert House(tree).relative(Path("/elsewhere")) == "/elsewhere"


def test_the_tests_own_folders_are_no_tree(tree: Path) -> None:
    for name in ("assignments", "grader"):
        (tree / "tests" / name).mkdir(parents=True)
    hidden_test = tree / "tests" / "hidden" / "rmsnorm" / "test_forward_hidden.py"
    assert house.find(hidden_test).root == tree
