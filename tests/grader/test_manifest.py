from pathlib import Path

import pytest

from grader import house, manifest
from grader.house import House, HouseError
from grader.manifest import ManifestError

WHOLE = """\
name = "softmax"
title = "Softmax"
files = ["softmax.py", "masks.py"]
time_limit = 30
memory_limit_mb = 512
seed = 7

[[tasks]]
id = "1"
title = "Forward"
[[tasks.tests]]
number = "1.1"
test = "public/test_forward.py::TestForward::test_rows"
points = 3
[[tasks.tests]]
number = "1.2"
test = "hidden/test_forward_hidden.py::TestForward::test_rows"
points = 2.5
time_limit = 5.5
memory_limit_mb = 256

[[tasks]]
id = "2"
title = "Backward"
[[tasks.tests]]
number = "2.1"
test = "public/test_forward.py::TestForward::test_columns"
points = 1
visibility = "after_due_date"
"""


class Tree:
    def __init__(self, root: Path) -> None:
        self.house = House(root)
        self.folder = root / "assignments" / "softmax"
        (self.folder / "public").mkdir(parents=True)
        (self.folder / "public" / "test_forward.py").touch()
        self.write(WHOLE)

    def write(self, text: str) -> None:
        (self.folder / "assignment.toml").write_text(text, encoding="utf-8")

    def replace(self, old: str, new: str) -> None:
        assert old in WHOLE
        self.write(WHOLE.replace(old, new, 1))

    def refusal(self) -> str:
        with pytest.raises(ManifestError) as refused:
            manifest.load("softmax", self.house)
        message = str(refused.value)
        assert message.startswith("assignments/softmax/assignment.toml")
        return message


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_everything_is_read(tree: Tree) -> None:
    found = manifest.load("softmax", tree.house)
    assert (found.name, found.title, found.seed) == ("softmax", "Softmax", 7)
    assert found.files == ["softmax.py", "masks.py"]
    assert found.task_ids == ("1", "2")
    assert [test.number for test in found.tests()] == ["1.1", "1.2", "2.1"]
    assert [test.points for test in found.tests()] == [3, 2.5, 1]
    assert found.total_points == 6.5
    assert [task.points for task in found.tasks] == [5.5, 1]


def test_parts_of_a_reference(tree: Tree) -> None:
    test = manifest.load("softmax", tree.house).test("1.2")
    assert test.hidden
    assert (test.file, test.case, test.method) == (
        "test_forward_hidden.py",
        "TestForward",
        "test_rows",
    )


def test_where_test_files_are(tree: Tree) -> None:
    found = manifest.load("softmax", tree.house)
    root = tree.house.root
    public = root / "assignments" / "softmax" / "public" / "test_forward.py"
    hidden = root / "tests" / "hidden" / "softmax" / "test_forward_hidden.py"
    assert found.test_path(found.test("1.1"), tree.house) == public
    assert found.test_path(found.test("1.2"), tree.house) == hidden


def test_visibility_follows_the_folder_unless_it_is_given(tree: Tree) -> None:
    found = manifest.load("softmax", tree.house)
    assert [test.visibility for test in found.tests()] == ["visible", "hidden", "after_due_date"]


def test_limits_are_the_assignments_unless_a_test_has_its_own(tree: Tree) -> None:
    found = manifest.load("softmax", tree.house)
    assert [found.time_limit_of(test) for test in found.tests()] == [30, 5.5, 30]
    assert [found.memory_limit_mb_of(test) for test in found.tests()] == [512, 256, 512]


def test_limits_and_seed_have_defaults(tree: Tree) -> None:
    tree.replace("time_limit = 30\nmemory_limit_mb = 512\nseed = 7\n", "")
    found = manifest.load("softmax", tree.house)
    assert (found.time_limit, found.memory_limit_mb, found.seed) == (60, 640, 0)


def test_task_of_a_test(tree: Tree) -> None:
    found = manifest.load("softmax", tree.house)
    assert found.task_of(found.test("2.1")).title == "Backward"
    with pytest.raises(KeyError):
        found.test("2.2")


def test_decimal_points_add_up_without_residue(tree: Tree) -> None:
    for old in ("points = 3", "points = 2.5", "points = 1"):
        text = (tree.folder / "assignment.toml").read_text()
        tree.write(text.replace(old, "points = 0.1", 1))
    assert 0.1 + 0.1 + 0.1 != 0.3
    assert manifest.load("softmax", tree.house).total_points == 0.3


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("seed = 7", "sede = 7", "sede", "no such key"),
        ("points = 3", "points = 3\npoint = 3", "(number 1.1).point", "no such key"),
        ('title = "Forward"', "", "tasks[0] (id 1).title", "is missing"),
        ('title = "Softmax"', 'title = ""', "title", "at least 1 character"),
        ("points = 3", 'points = "3"', "tasks[0] (id 1).tests[0] (number 1.1).points", "'3'"),
        ("points = 3", "points = true", "points", "valid number"),
        ("points = 3", "points = 0", "(number 1.1).points", "greater than 0, but is 0"),
        ("points = 3", "points = -1", "points", "greater than 0"),
        ("points = 3", "points = nan", "points", "finite"),
        ("points = 2.5", "points = inf", "(number 1.2).points", "finite"),
        ("time_limit = 30", "time_limit = 0", "time_limit", "greater than 0"),
        ("memory_limit_mb = 512", "memory_limit_mb = 1.5", "memory_limit_mb", "integer"),
        ("seed = 7", "seed = -1", "seed", "greater than or equal to 0"),
        ('number = "1.2"', 'number = "1.1"', "", "number '1.1' is there 2 times"),
        ('number = "1.2"', 'number = "2.2"', "tasks[0] (id 1)", "number it '1.1'"),
        ('number = "1.2"', 'number = "12"', "number", "match pattern"),
        ('number = "1.2"', 'number = "1.2.1"', "tasks[0] (id 1)", "under task '1'"),
        ('number = "1.2"', "number = 1.2", "number", "valid string"),
        ('id = "2"', 'id = "1"', "tasks[1]", "under task '1'"),
        ("::test_columns", "::test_rows", "", "is there 2 times"),
        ('["softmax.py", "masks.py"]', "[]", "files", "at least 1 item"),
        ('"masks.py"', '"Softmax.py"', "", "file 'softmax.py' is there 2 times"),
        ('"masks.py"', '"lib/masks.py"', "files[1]", "plain file name"),
        ('"masks.py"', '"../masks.py"', "files[1]", "plain file name"),
        ('"masks.py"', '"masks.txt"', "files[1]", "plain file name"),
        ('"masks.py"', '"torch.py"', "files[1]", "would hide the module 'torch'"),
        ('"masks.py"', '"random.py"', "files[1]", "would hide the module 'random'"),
        ('"masks.py"', '"class.py"', "files[1]", "would hide"),
        ('visibility = "after_due_date"', 'visibility = "secret"', "visibility", "'secret'"),
        ("public/test_forward.py::TestForward::test_rows", "public/test_forward.py", "test", "::"),
        ("public/test_forward.py::T", "public/../test_forward.py::T", "test", "is not a test"),
        ("public/test_forward.py::T", "private/test_forward.py::T", "test", "is not a test"),
        ("::TestForward::test_rows", "::TestForward::rows", "test", "is not a test"),
        ('name = "softmax"', 'name = "Softmax"', "name", "match pattern"),
        ('name = "softmax"', 'name = "softmin"', "name", "the folder is 'softmax'"),
    ],
)
def test_refused_with_field_and_remedy(
    tree: Tree, old: str, new: str, where: str, what: str
) -> None:
    tree.replace(old, new)
    message = tree.refusal()
    assert where in message
    assert what in message


def test_several_errors_are_all_told(tree: Tree) -> None:
    tree.write(WHOLE.replace("points = 3", "points = 0").replace("seed = 7", "sede = 7"))
    message = tree.refusal()
    assert "sede" in message
    assert "(number 1.1).points" in message


def test_a_task_without_tests(tree: Tree) -> None:
    tree.write(WHOLE.partition('[[tasks.tests]]\nnumber = "2.1"')[0])
    assert "tasks[1] (id 2).tests: is missing" in tree.refusal()


def test_not_toml(tree: Tree) -> None:
    tree.replace("seed = 7", "seed =")
    assert "cannot be read as TOML" in tree.refusal()
    assert "line 6" in tree.refusal()


def test_not_utf8(tree: Tree) -> None:
    (tree.folder / "assignment.toml").write_bytes(WHOLE.encode().replace(b"Softmax", b"Soft\xff"))
    assert "cannot be read as TOML" in tree.refusal()


def test_a_public_test_file_must_exist(tree: Tree) -> None:
    (tree.folder / "public" / "test_forward.py").unlink()
    message = tree.refusal()
    assert "test 1.1: there is no assignments/softmax/public/test_forward.py" in message


def test_hidden_test_files_must_exist_where_there_are_any(tree: Tree) -> None:
    hidden = tree.house.hidden("softmax")
    hidden.mkdir(parents=True)
    assert "there is no tests/hidden/softmax/test_forward_hidden.py" in tree.refusal()
    (hidden / "test_forward_hidden.py").touch()
    assert manifest.load("softmax", tree.house).test("1.2").hidden


def test_an_unknown_assignment(tree: Tree) -> None:
    with pytest.raises(HouseError, match="those there are: softmax"):
        manifest.load("softmin", tree.house)


def test_nothing_changes_once_it_is_loaded(tree: Tree) -> None:
    found = manifest.load("softmax", tree.house)
    with pytest.raises(ValueError, match="frozen"):
        found.test("1.1").points = 100


def test_a_task_says_which_file_it_is_written_in(tree: Tree) -> None:
    tree.replace('title = "Backward"', 'title = "Backward"\nfile = "masks.py"')
    assignment = manifest.load("softmax", tree.house)
    assert [assignment.file_of(task) for task in assignment.tasks] == ["softmax.py", "masks.py"]


def test_a_task_in_a_file_that_is_not_declared(tree: Tree) -> None:
    tree.replace('title = "Backward"', 'title = "Backward"\nfile = "mask.py"')
    assert "task '2' is written in 'mask.py', which is not among `files`" in tree.refusal()


@pytest.mark.parametrize("module", sorted(path.name for path in house.here().root.glob("shared/*")))
def test_no_student_file_hides_a_shared_package(tree: Tree, module: str) -> None:
    tree.replace('"masks.py"', f'"{module}.py"')
    assert f"would hide the module {module!r}" in tree.refusal()
