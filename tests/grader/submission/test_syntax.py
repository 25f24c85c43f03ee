import pytest

from grader.submission import syntax
from grader.submission.syntax import check_parts, check_syntax, quote


def test_a_sound_file_has_no_problem() -> None:
    assert check_syntax("import torch\n\ndef f(x: int) -> int:\n    return x\n", "a.py") is None


def test_warnings_are_no_problem_and_do_not_leak() -> None:
    assert check_syntax('a = "\\d"\nb = a is "x"\nassert (a, "b")\n', "a.py") is None


def test_nothing_is_run() -> None:
    assert check_syntax("raise SystemExit(1)\n", "a.py") is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = 1\nb = = 2\n", "a.py, line 2: SyntaxError: invalid syntax\n    b = = 2\n        ^"),
        (
            "def f():\nreturn 1\n",
            "a.py, line 2: IndentationError: expected an indented block after function definition "
            "on line 1\n    return 1\n    ^",
        ),
        (
            "if 1:\n    a = (1,\n",
            "a.py, line 2: SyntaxError: '(' was never closed\n    a = (1,\n        ^",
        ),
        ("x = 1\nreturn x\n", "a.py, line 2: SyntaxError: 'return' outside function"),
        ("if 1:\n\ta = 1\n        b = 1\n", "a.py, line 3: TabError"),
        ('a = 1\nb = """\n\n', "a.py, line 2: SyntaxError: unterminated triple-quoted string"),
    ],
)
def test_a_syntax_error_has_its_line_and_a_caret(source: str, message: str) -> None:
    problem = check_syntax(source, "a.py")
    assert problem is not None
    assert problem.kind == "import error"
    assert problem.message.startswith(message)


def test_nul_is_located() -> None:
    problem = check_syntax("a = 1\nb = 'x\0'\n", "a.py")
    assert problem is not None
    assert problem.message == (
        "a.py, line 2: a NUL character, which no program may hold\n"
        "    b = 'x\N{REPLACEMENT CHARACTER}'\n          ^"
    )


@pytest.mark.parametrize(
    "source",
    ["x = " + "-" * 100_000 + "1", "x = " + "+".join("1" * 200_000), "x = " + "a" + ".b" * 200_000],
    ids=["parser", "compiler", "attributes"],
)
def test_deep_nesting_is_a_problem_not_a_crash(source: str) -> None:
    problem = check_syntax(source, "a.py")
    assert problem is not None
    assert "nested too deeply" in problem.message


def test_a_number_too_long_to_read() -> None:
    problem = check_syntax("x = " + "9" * 10_000, "a.py")
    assert problem is not None
    assert problem.kind == "import error"
    assert len(problem.message) < 400


def test_another_encoding_declared() -> None:
    problem = check_syntax("# -*- coding: latin-1 -*-\na = 'é'\n", "a.py")
    assert problem is not None
    assert "declares the encoding iso-8859-1" in problem.message
    assert check_syntax("# -*- coding: utf-8 -*-\na = 'é'\n", "a.py") is None


def test_an_unknown_encoding_declared() -> None:
    problem = check_syntax("# coding: klingon\n", "a.py")
    assert problem is not None
    assert "klingon" in problem.message


def test_half_a_surrogate_pair() -> None:
    problem = check_syntax("a = 1\nb = '\ud83d'\n", "a.py")
    assert problem is not None
    assert problem.message.startswith("a.py, line 2: half of a surrogate pair")
    problem.message.encode()  # can be shown


def test_lines_from_a_notebook_are_placed_in_their_cells() -> None:
    problem = check_syntax("# cell 4\na = 1\nb = = 2\n", "a.py", (None, (4, 1), (4, 2)))
    assert problem is not None
    assert problem.message.startswith("cell 4, line 2: SyntaxError")


def test_a_long_line_is_shown_around_its_caret() -> None:
    line = "x = [" + "1, " * 100 + "= ]"
    quoted, caret = quote(line, line.index("= ]") + 1).split("\n")
    assert len(quoted) < 100
    assert quoted[len(caret) - 1] == "="


@pytest.mark.parametrize(
    ("limit", "value", "source"),
    [
        ("_CPU_SECONDS", 1, "def f():0\n" * 40_000),  # quadratic in CPython
        ("_MEMORY_BYTES", 64 << 20, "a\n" * 120_000),
    ],
)
def test_what_takes_too_much_to_compile(monkeypatch, limit: str, value: int, source: str) -> None:
    """It is a problem of the file; this process neither waits nor pays for it."""
    old = getattr(syntax, limit)
    tighter = syntax._COMPILE.replace(f"({old}, {old})", f"({value}, {value})")
    assert tighter != syntax._COMPILE
    monkeypatch.setattr(syntax, "_COMPILE", tighter)
    problem = check_syntax(source, "a.py")
    assert problem is not None
    assert problem.kind == "import error"
    assert problem.message.endswith("simplify it")


def test_a_compiler_that_never_answers(monkeypatch) -> None:
    monkeypatch.setattr(syntax, "_COMPILE", "import time; time.sleep(60)")
    monkeypatch.setattr(syntax, "_WALL_SECONDS", 0.2)
    problem = check_syntax("a = 1\n", "a.py")
    assert problem is not None
    assert "Python takes more than" in problem.message


def test_a_compiler_that_crashes(monkeypatch) -> None:
    monkeypatch.setattr(syntax, "_COMPILE", "import os; os.abort()")
    assert check_syntax("a = 1\n", "a.py") is not None


def test_the_environment_cannot_change_the_compiler(monkeypatch, tmp_path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(1)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert check_syntax("a = 1\n", "a.py") is None


def test_the_first_of_several_parts() -> None:
    parts = [("a = 1\n", None), ("b = \n", ((7, 1),)), ("c = '\0'\n", None)]
    problem = check_parts(parts, "a.py")
    assert problem is not None
    assert problem.message.startswith("cell 7, line 1: SyntaxError")
    problem = check_parts([parts[0], parts[2], parts[1]], "a.py")
    assert problem is not None
    assert "a NUL character" in problem.message
    assert check_parts(parts[:1], "a.py") is None
    assert check_parts([], "a.py") is None
