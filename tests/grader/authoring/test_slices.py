"""What a test reaches, what is left of a program without the rest, and what a variant changes."""

import ast

import pytest

from grader.authoring.slices import changed_names, slice_for, words_of

PROGRAM = {
    "lab.py": '''"""Two ways to the same sum."""

import math
from functools import cache

TABLE = [1, 2]
FIRST, SECOND = TABLE
LIMIT: int = 4

if LIMIT > 3:
    TABLE.append(3)


def check(x):
    """Names nothing, though it says `slow`."""
    if x > LIMIT:
        raise ValueError(x)


@cache
def fast(x):
    check(x)
    return math.fsum([x])


def slow(x):
    return helper(x) + SECOND


def helper(x):
    return x


class State:
    def step(self):
        return other_step(self)


def other_step(state):
    return "slow"
''',
    "more.py": """import lab


def total(x):
    return lab.fast(x)


def rest(x):
    return x
""",
}


def defined(text: str) -> list[str]:
    return [node.name for node in ast.parse(text).body if hasattr(node, "name")]


class TestSlices:
    @pytest.mark.parametrize(
        ("word", "lab", "more"),
        [
            ("fast", ["check", "fast"], []),
            ("slow", ["slow", "helper"], []),
            ("State", ["slow", "helper", "State", "other_step"], []),
            ("total", ["check", "fast"], ["total"]),
            ("rest", [], ["rest"]),
            ("nothing", [], []),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_what_is_reached_stays(self, word, lab, more):
        found = slice_for(PROGRAM, {word})
        assert defined(found.files["lab.py"]) == lab
        assert defined(found.files["more.py"]) == more

    def test_it_runs(self):
        names: dict[str, object] = {}
        exec(slice_for(PROGRAM, {"slow"}).files["lab.py"], names)
        assert names["slow"](5) == 7
        assert "fast" not in names
        assert "State" not in names

    def test_imports_and_statements_that_define_nothing_stay_with_what_they_mention(self):
        (text, _) = slice_for(PROGRAM, set()).files.values()
        assert "import math" in text
        assert "LIMIT: int = 4" in text
        assert "TABLE.append(3)" in text
        assert "FIRST" not in text

    @pytest.mark.parametrize(
        "more",
        [
            "ALL = [slow(x) for x in range(3)]",
            "class Other(type(slow(1))):\n    pass",
            "@slow\ndef other():\n    pass",
            "def other(x=slow(1)):\n    pass",
        ],
    )
    def test_what_is_called_while_a_file_is_imported_stays(self, more):
        """Were it wrong, no test would get as far as to call anything."""
        files = {**PROGRAM, "lab.py": f"{PROGRAM['lab.py']}\n\n{more}\n"}
        assert defined(slice_for(files, {"rest"}).files["lab.py"]) == ["slow", "helper"]

    def test_what_is_only_called_later_does_not(self):
        files = {**PROGRAM, "lab.py": f"{PROGRAM['lab.py']}\n\nf = lambda x: slow(x)\n"}
        assert defined(slice_for(files, {"rest"}).files["lab.py"]) == []

    def test_names_are_all_that_is_mentioned_defined_or_not(self):
        names = slice_for(PROGRAM, {"fast", "elsewhere"}).names
        assert {"fast", "elsewhere", "check", "fsum", "LIMIT", "ValueError", "cache"} <= names
        assert not {"slow", "helper", "State"} & names


TESTS = '''
import oracle

NAMES = ["lab:first", "lab:second"]
UNUSED = "unused"


def run(student, name):
    """docstring"""
    return student.call(f"lab:{name}", oracle.expected())


class Base:
    DTYPE = "float"

    def setUp(self):
        self.student.call("prepare")


class TestOther(Base):
    def test_a(self):
        self.student.call("other_class")


class TestThis(Base):
    SIZE = "of_the_class"

    def setUp(self):
        self.student.call("fixture")

    def helper(self):
        run(self.student, "by_helper")

    def unused(self):
        self.student.call("by_unused")

    def test_a(self):
        """title"""
        self.helper()
        self.student.call(self.SIZE)

    def test_b(self):
        for name in NAMES:
            self.student.call(name)
'''


class TestWords:
    def test_of_the_test_and_of_what_it_uses(self):
        words = words_of(TESTS, "TestThis", "test_a")
        assert words == {"float", "prepare", "fixture", "lab", "by_helper", "of_the_class"}

    def test_of_another(self):
        words = words_of(TESTS, "TestThis", "test_b")
        assert words == {"float", "prepare", "fixture", "lab", "first", "second"}

    def test_not_those_after_dots(self):
        """An oracle's functions are called as the solution's are."""
        assert "expected" not in words_of(TESTS, "TestThis", "test_a")


class TestChanges:
    @staticmethod
    def changed(old: str, new: str):
        assert old in PROGRAM["lab.py"]
        return changed_names(PROGRAM, {**PROGRAM, "lab.py": PROGRAM["lab.py"].replace(old, new)})

    def test_none(self):
        assert changed_names(PROGRAM, PROGRAM) == set()
        assert self.changed("    return x\n", "    return x  # same\n") == set()

    def test_a_function(self):
        assert self.changed("return helper(x)", "return 1 + helper(x)") == {"slow"}

    def test_a_constant(self):
        assert self.changed("LIMIT: int = 4", "LIMIT: int = 5") == {"LIMIT"}
        assert self.changed("FIRST, SECOND = TABLE", "FIRST, SECOND = 1, 2") == {"FIRST", "SECOND"}

    def test_a_new_name_and_one_that_is_gone(self):
        assert self.changed("def helper(x)", "def helped(x)") == {"helper", "helped"}

    def test_an_import(self):
        assert self.changed("import math\n", "import math\nimport os.path as p\n") == {"p"}
        assert self.changed("import math\n", "import math\nimport os.path\n") == {"os"}

    def test_the_order_of_definitions_does_not_matter(self):
        moved = PROGRAM["more.py"].replace("import lab\n\n\n", "") + "\n\nimport lab\n"
        assert changed_names(PROGRAM, {**PROGRAM, "more.py": moved}) == set()

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("TABLE.append(3)", "TABLE.append(4)"),
            ("TABLE = [1, 2]", "TABLE = list((1, 2))"),
            ("LIMIT: int = 4", "LIMIT: int = int(4)"),
            ("@cache\n", "@cache()\n"),
            ("def slow(x)", "def slow(x, y=print())"),
            ("class State:\n", "class State:\n    SIZE = len('abc')\n\n"),
        ],
    )
    def test_what_runs_while_it_is_imported_may_change_anything(self, old, new):
        assert self.changed(old, new) is None

    def test_a_call_within_a_function_is_no_such_thing(self):
        assert self.changed("return x\n", "return max([x], key=lambda y: abs(y))\n") == {"helper"}
