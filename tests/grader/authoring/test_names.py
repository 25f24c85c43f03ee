import textwrap

import pytest

from grader.authoring import starter
from grader.authoring.markers import AuthoringError


def strip(source: str) -> str:
    return starter.strip(textwrap.dedent(source), "softmax.py")


def refusal(source: str) -> str:
    with pytest.raises(AuthoringError) as refused:
        strip(source)
    return str(refused.value)


def test_code_behind_a_stub() -> None:
    message = refusal(
        """\
        def f(x):
            # BEGIN SOLUTION softmax 1: add one
            x += 1
            # END SOLUTION
            return x
        """
    )
    assert message.startswith("softmax.py, line 5: is behind the stub of line 2")


def test_two_blocks_in_one_suite() -> None:
    message = refusal(
        """\
        def f(x):
            # BEGIN SOLUTION softmax 1: add one
            x += 1
            # END SOLUTION

            # BEGIN SOLUTION softmax 1: add two
            x += 2
            # END SOLUTION
        """
    )
    assert "line 6: is behind the stub of line 2" in message


def test_code_behind_a_suite_with_a_stub_is_reached() -> None:
    made = strip(
        """\
        def f(x):
            if x:
                # BEGIN SOLUTION softmax 1: add one
                x += 1
                # END SOLUTION
            return x
        """
    )
    assert made.endswith("    return x\n")


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        (  # a local of the function
            """\
            def f(x):
                if x:
                    # BEGIN SOLUTION softmax 1: set y
                    y = 1
                    # END SOLUTION
                return y
            """,
            6,
            "y",
        ),
        (  # a local that hid a module's name, which now would be meant
            """\
            y = 0
            def f(x):
                for _ in x:
                    # BEGIN SOLUTION softmax 1: set y
                    y = 1
                    # END SOLUTION
                return y
            """,
            7,
            "y",
        ),
        (  # a local that hid a builtin
            """\
            def f(x):
                with x:
                    # BEGIN SOLUTION softmax 1: find the largest
                    max = 1
                    # END SOLUTION
                return max
            """,
            6,
            "max",
        ),
        (  # a function within the function, and one that uses it
            """\
            def f(x):
                if x:
                    # BEGIN SOLUTION softmax 1: define g
                    def g():
                        pass
                    # END SOLUTION
                return lambda: g()
            """,
            7,
            "g",
        ),
        (  # a closure over a local
            """\
            def f(x):
                if x:
                    # BEGIN SOLUTION softmax 1: set y
                    y = 1
                    # END SOLUTION
                def g():
                    return [y for _ in x]
                return g
            """,
            7,
            "y",
        ),
        (  # a module's name, set by a function
            """\
            def f(x):
                # BEGIN SOLUTION softmax 1: keep a table
                global TABLE
                TABLE = {}
                # END SOLUTION
            def g():
                return TABLE
            """,
            7,
            "TABLE",
        ),
        (  # the same, read at top level
            """\
            def f(x):
                # BEGIN SOLUTION softmax 1: keep a table
                global TABLE
                TABLE = {}
                # END SOLUTION
            print(TABLE)
            """,
            6,
            "TABLE",
        ),
        (  # an import in a block
            """\
            def f(x):
                if x:
                    # BEGIN SOLUTION softmax 1: use math
                    import math
                    # END SOLUTION
                return math.pi
            """,
            6,
            "math",
        ),
    ],
)
def test_names_that_only_a_block_defined(source: str, line: int, name: str) -> None:
    message = refusal(source)
    assert message.startswith(f"softmax.py, line {line}: {name!r} is used here, but only a block")


@pytest.mark.parametrize(
    "source",
    [
        """\
        def f(x):
            y = 0
            if x:
                # BEGIN SOLUTION softmax 1: set y
                y = 1
                # END SOLUTION
            return y
        """,
        """\
        def f(x):
            for i in range(len(x)):
                # BEGIN SOLUTION softmax 1: add
                total = sum(x)
                # END SOLUTION
            return [i for i in x if __name__]
        """,
        """\
        def f(x):
            def g():
                nonlocal x
                # BEGIN SOLUTION softmax 1: set x
                x = 1
                # END SOLUTION
            return g, undefined_before_too
        """,
        """\
        TABLE = {}
        def f(x):
            # BEGIN SOLUTION softmax 1: keep a table
            global TABLE
            TABLE = {1: 2}
            # END SOLUTION
        def g():
            return TABLE
        """,
    ],
)
def test_names_that_are_defined_elsewhere_too(source: str) -> None:
    assert "NotImplementedError" in strip(source)


def with_import(line: str, use: str, rest: str = "") -> str:
    return (
        f"{line}\n\n\ndef f(x):\n    # BEGIN SOLUTION softmax 1: use it\n    return {use}\n"
        f"    # END SOLUTION\n{rest}"
    )


@pytest.mark.parametrize(
    ("line", "use", "name"),
    [
        ("import math", "math.pi", "math"),
        ("import triton.language as tl", "tl.exp(x)", "tl"),
        ("import os.path", "os.path.join(x)", "os"),
        ("from math import pi", "pi", "pi"),
        ("from math import (\n    pi,\n)", "pi", "pi"),
        ("from math import pi as e", "e", "e"),
    ],
)
def test_leftover_imports(line: str, use: str, name: str) -> None:
    message = refusal(with_import(line, use))
    assert f"only blocks use the import {name!r}" in message
    assert "# starter: keep" in message


def test_the_line_of_a_leftover_import_is_its_own() -> None:
    message = refusal(with_import("from math import (\n    e,\n    pi,\n)", "pi", "E = e\n"))
    assert message.startswith("softmax.py, line 3: ")


@pytest.mark.parametrize(
    ("line", "use", "rest"),
    [
        ("import math", "math.pi", "TAU = 2 * math.pi\n"),
        ("import triton", "triton.cdiv(x, 2)", "@triton.jit\ndef k(): pass\n"),
        ("import triton.language as tl", "tl.exp(x)", "def k(B: tl.constexpr): pass\n"),
        ("from math import pi", "pi", '__all__ = ["f", "pi"]\n'),
        ("from __future__ import annotations", "annotations", ""),
        ("import unused_before_too", "x", ""),
    ],
)
def test_imports_that_may_stay(line: str, use: str, rest: str) -> None:
    assert strip(with_import(line, use, rest)).startswith(f"{line}\n")


def test_an_import_that_students_will_need_is_kept_without_the_comment() -> None:
    made = strip(with_import("import math  # starter: keep", "math.pi"))
    assert made.startswith("import math\n\n")
    made = strip(with_import("from math import (\n    e,  # starter: keep\n    pi,\n)", "pi + e"))
    assert made.startswith("from math import (\n    e,\n    pi,\n)\n")


def test_the_comment_means_nothing_elsewhere() -> None:
    source = with_import("import math", "x", 'TEXT = """\n# starter: keep\n"""\n')
    assert "# starter: keep" in strip(source)
