import codecs

import pytest

from grader.submission import text
from grader.submission.result import Refused


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_are_unified_and_said(ends: str) -> None:
    source, notes = text.decode(f"a = 1{ends}b = 2{ends}".encode(), "a.py")
    assert source == "a = 1\nb = 2\n"
    assert notes == ["a.py: its line ends (CRLF) were converted to LF"]


def test_byte_order_mark_is_removed_and_said() -> None:
    source, notes = text.decode(codecs.BOM_UTF8 + b"a = 1\n", "a.py")
    assert source == "a = 1\n"
    assert notes == ["a.py: the byte order mark at its beginning was removed"]


def test_plain_text_needs_no_notes() -> None:
    assert text.decode("σ = 1\n".encode(), "a.py") == ("σ = 1\n", [])


def test_form_feeds_and_unicode_line_separators_are_no_line_ends() -> None:
    source = "a = '\u2028'\f\nb = 1\n"
    assert text.decode(source.encode(), "a.py") == (source, [])


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_not_utf8_names_the_byte(mark: bytes) -> None:
    with pytest.raises(Refused) as refused:
        text.decode(mark + b"a = 1\n# caf\xe9\n", "a.py", "a.py")
    problem = refused.value.problem
    assert (problem.kind, problem.file) == ("import error", "a.py")
    assert f"byte {11 + len(mark)} (line 2) is 0xe9" in problem.message


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_recognised(encoding: str) -> None:
    with pytest.raises(Refused, match=r"a.py is UTF-16 .* save it as UTF-8"):
        text.decode(("\ufeff" + "a = 1\n").encode(encoding), "a.py")


def test_a_sound_file_has_no_problem() -> None:
    assert (
        text.check_syntax("import torch\n\ndef f(x: int) -> int:\n    return x\n", "a.py") is None
    )


def test_warnings_are_no_problem_and_do_not_leak() -> None:
    assert text.check_syntax('a = "\\d"\nb = a is "x"\nassert (a, "b")\n', "a.py") is None


def test_nothing_is_run() -> None:
    assert text.check_syntax("raise SystemExit(1)\n", "a.py") is None


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
    problem = text.check_syntax(source, "a.py")
    assert problem is not None
    assert problem.kind == "import error"
    assert problem.message.startswith(message)


def test_nul_is_located() -> None:
    problem = text.check_syntax("a = 1\nb = 'x\0'\n", "a.py")
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
    problem = text.check_syntax(source, "a.py")
    assert problem is not None
    assert "nested too deeply" in problem.message


def test_a_number_too_long_to_read() -> None:
    problem = text.check_syntax("x = " + "9" * 10_000, "a.py")
    assert problem is not None
    assert problem.kind == "import error"
    assert len(problem.message) < 400


def test_another_encoding_declared() -> None:
    problem = text.check_syntax("# -*- coding: latin-1 -*-\na = 'é'\n", "a.py")
    assert problem is not None
    assert "declares the encoding iso-8859-1" in problem.message
    assert text.check_syntax("# -*- coding: utf-8 -*-\na = 'é'\n", "a.py") is None


def test_an_unknown_encoding_declared() -> None:
    problem = text.check_syntax("# coding: klingon\n", "a.py")
    assert problem is not None
    assert "klingon" in problem.message


def test_half_a_surrogate_pair() -> None:
    problem = text.check_syntax("a = 1\nb = '\ud83d'\n", "a.py")
    assert problem is not None
    assert problem.message.startswith("a.py, line 2: half of a surrogate pair")
    problem.message.encode()  # can be shown


def test_lines_from_a_notebook_are_placed_in_their_cells() -> None:
    problem = text.check_syntax("# cell 4\na = 1\nb = = 2\n", "a.py", (None, (4, 1), (4, 2)))
    assert problem is not None
    assert problem.message.startswith("cell 4, line 2: SyntaxError")


def test_a_long_line_is_shown_around_its_caret() -> None:
    line = "x = [" + "1, " * 100 + "= ]"
    quoted, caret = text.quote(line, line.index("= ]") + 1).split("\n")
    assert len(quoted) < 100
    assert quoted[len(caret) - 1] == "="


def test_names_are_shown_without_what_a_terminal_would_obey() -> None:
    assert text.shown("a\x1b[31m\n.py") == "a\\x1b[31m .py"
    assert text.shown("a" * 500).count("a") == 110
    text.shown(b"\xff.py".decode("utf-8", "surrogateescape")).encode()
