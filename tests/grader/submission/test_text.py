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


def test_names_are_shown_without_what_a_terminal_would_obey() -> None:
    assert text.shown("a\x1b[31m\n.py") == "a\\x1b[31m .py"
    assert text.shown("a" * 500).count("a") == 110
    text.shown(b"\xff.py".decode("utf-8", "surrogateescape")).encode()
