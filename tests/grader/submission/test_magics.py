import ast

import pytest

from grader.submission.magics import strip_magics


def stripped(source: str) -> tuple[str, list[tuple[int, str]]]:
    lines = source.split("\n")
    kept, dropped = strip_magics(lines)
    assert len(kept) == len(lines)
    return "\n".join(kept), [(one.line, one.kind) for one in dropped]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("%matplotlib inline", "the line magic"),
        ("%%time", "the line magic"),
        ("!pip install 'it's broken", "the shell line"),
        ('!echo "', "the shell line"),
        ("!!ls", "the shell line"),
        ("?print", "the help line"),
        ("print?", "the help line"),
        ("torch.nn??", "the help line"),
        ("torch.*?  # what is there", "the help line"),
        ("files = !ls", "the shell line"),
        ("a.b, c[0] = %timeit -o f()", "the line magic"),
        ("%timeit y = f()", "the line magic"),
        ("%time", "the line magic"),
        ("%time !ls", "the line magic"),
        ("%time %cd src", "the line magic"),
        ("%timers f()", "the line magic"),
    ],
)
def test_what_is_not_python_is_dropped(line: str, kind: str) -> None:
    source, dropped = stripped(f"a = 1\n{line}\nb = 2")
    assert source == f"a = 1\n# {line}\nb = 2"
    assert dropped == [(2, kind)]


@pytest.mark.parametrize(
    "source",
    [
        's = """\n%matplotlib inline\n!ls\nwhat?\n"""',
        "s = '''a \\'''\n%no\n'''",
        's = r"""\\\\"""\nt = f"""\n!{s}\n"""',
        "x = (7\n%3\n)",
        "x = [\n  7\n  % 3,\n]",
        "x = 7 \\\n% 3",
        "s = 'a\\\n%b'",
        "# really?\nx = 1  # why?",
        "s = 'what?'",
        "s = '#' '''\n!ls\n'''",
        "x = a != b",
        "x = y % 3",
        "d = {'%': '!', 'a': [1,\n2]}",
        "s = \"'''\"\nx = 1",
        "f(\n    # a bracket ( in a comment\n    '(',\n)",
        's = """one""" + """\n%two\n"""',
        "x = '\\\\'\ny = 1",
    ],
)
def test_python_is_left_alone(source: str) -> None:
    ast.parse(source)
    assert stripped(source) == (source, [])


def test_after_a_string_lines_are_dropped_again() -> None:
    source, dropped = stripped('s = """\n!a\n"""\n!b\nt = (1,\n!c)')
    assert source == 's = """\n!a\n"""\n# !b\nt = (1,\n!c)'
    assert dropped == [(4, "the shell line")]


def test_indented_lines_become_pass() -> None:
    source, dropped = stripped("if x:\n    !ls\nelse:\n\t%timeit f()\n\tg?\n")
    assert source == "if x:\n    pass  # !ls\nelse:\n\tpass  # %timeit f()\n\tpass  # g?\n"
    assert [line for line, _ in dropped] == [2, 4, 5]
    ast.parse(source)


def test_a_magic_goes_on_after_a_backslash() -> None:
    source, dropped = stripped("!pip install \\\n    einops \\\n    numpy\na = 1")
    assert source == "# !pip install \\\n    # einops \\\n    # numpy\na = 1"
    assert dropped == [(1, "the shell line")]
    ast.parse(source)


def test_an_unclosed_string_ends_with_its_line() -> None:
    source, dropped = stripped("s = 'abc\n!ls")
    assert source == "s = 'abc\n# !ls"
    assert dropped == [(2, "the shell line")]


def test_a_surplus_bracket_does_not_hide_what_follows() -> None:
    assert stripped("f())\n!ls")[1] == [(2, "the shell line")]


def test_a_long_string_of_backslashes_takes_no_time() -> None:
    line = "s = '" + "\\" * 200_001
    assert stripped(f"{line}\n!ls")[0] == f"{line}\n!ls"  # an escaped line end: the string goes on


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("%time y = f(x)", "y = f(x)"),
        ("%time  --no-raise-error y = f(x)", "y = f(x)"),
        ("%time -x", "-x"),
        ("y = %time f(x)", "y = f(x)"),
        ("a.b, c[0] = %time f(x)", "a.b, c[0] = f(x)"),
        ("if x:\n    %time y = f(x)", "if x:\n    y = f(x)"),
        ("%time y = f(x, \\\n  1)", "y = f(x, \\\n  1)"),
        ('%time s = """\n!no shell line\n"""', 's = """\n!no shell line\n"""'),
    ],
)
def test_a_statement_that_is_timed_stays(line: str, kept: str) -> None:
    # `%time` executes it as if it stood alone; `%timeit` in a function, which binds nothing.
    source, dropped = stripped(f"{line}\nb = 2")
    assert source == f"{kept}\nb = 2"
    assert [kind for _, kind in dropped] == ["the line magic"]
