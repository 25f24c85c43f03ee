"""From bytes to Python source: encoding, line ends, syntax; and names and lines fit to be shown."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
import warnings

from grader.submission.result import LineMap, Problem, Refused, place

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SHOWN_COLUMNS = 90


def decode(data: bytes, name: str, file: str | None = None) -> tuple[str, list[str]]:
    """UTF-8 with any line ends, with or without a byte order mark → text with `\\n`, and notes.

    Args:
        data: a file's bytes.
        name: what to call it.
        file: the declared file that it stands for.

    Raises:
        Refused: it is not UTF-8; the message says at which byte.
    """
    notes = []
    if data.startswith(_UTF16):
        raise Refused(
            f"{name} is UTF-16 (it begins with the bytes {data[:2].hex(' ')}); save it as UTF-8",
            "import error",
            file,
        )
    if data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
        notes.append(f"{name}: the byte order mark at its beginning was removed")
        skipped = len(codecs.BOM_UTF8)
    else:
        skipped = 0
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(
            f"{name} is not UTF-8: byte {error.start + skipped} (line {line}) is "
            f"0x{data[error.start]:02x}; save it with the encoding UTF-8",
            "import error",
            file,
        ) from None
    if "\r" in text:
        text = unix_lines(text)
        notes.append(f"{name}: its line ends (CRLF) were converted to LF")
    return text, notes


def unix_lines(text: str) -> str:
    """The text with `\\n` for every `\\r\\n` and `\\r`, as Python itself reads it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_syntax(source: str, file: str, lines: LineMap | None = None) -> Problem | None:
    """Compiles a file, without running it: what Python has against it, or None.

    Args:
        source: with `\\n` line ends.
        file: the declared file that it is.
        lines: where its lines came from, if from a notebook.
    """
    if "\0" in source:
        at = source.index("\0")
        line = source.count("\n", 0, at) + 1
        column = at - source.rfind("\n", 0, at)
        return _problem(
            "a NUL character, which no program may hold", source, line, column, file, lines
        )
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source.encode("utf-8")).readline)
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        what = "half of a surrogate pair, which is not a character"
        return _problem(what, source, line, 0, file, lines)
    except SyntaxError as error:
        return _problem(f"{error}; save it as UTF-8", source, 1, 0, file, lines)
    if encoding != "utf-8":
        what = f"declares the encoding {encoding}; remove that comment, and save it as UTF-8"
        return _problem(what, source, 1, 0, file, lines)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubtful escapes and comparisons do run
            compile(source, file, "exec", dont_inherit=True)
    except SyntaxError as error:  # the base of IndentationError and TabError
        what = f"{type(error).__name__}: {error.msg}"
        return _problem(what, source, error.lineno or 1, error.offset or 0, file, lines)
    except (RecursionError, MemoryError):
        what = "its expressions are nested too deeply for Python to read; simplify them"
        return Problem("import error", f"{file}: {what}", file)
    except (ValueError, OverflowError) as error:  # an int of too many digits, and the like
        return Problem("import error", f"{file}: {error}", file)
    return None


def _problem(
    what: str, source: str, line: int, column: int, file: str, lines: LineMap | None
) -> Problem:
    """`column` counts from 1; 0 is nowhere in particular."""
    texts = source.split("\n")
    line = min(max(line, 1), len(texts))
    quoted = quote(texts[line - 1], column)
    message = f"{place(file, line, lines)}: {what}"
    return Problem("import error", f"{message}\n{quoted}" if quoted else message, file)


def quote(line: str, column: int) -> str:
    """A line of source, indented by four, with a caret below a column (from 1; 0: no caret)."""
    begin = len(line) - len(line.lstrip())
    if column - begin > _SHOWN_COLUMNS - 10:
        begin = column - _SHOWN_COLUMNS // 2
    text = line[begin : begin + _SHOWN_COLUMNS].rstrip()
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    if not text:
        return ""
    caret = column - 1 - begin
    if column < 1 or not 0 <= caret <= len(text):
        return f"    {text}"
    return f"    {text}\n    {' ' * caret}^"


def shown(name: str) -> str:
    """A file name that a student chose, fit for a terminal and a web page's text."""
    name = re.sub(r"\s", " ", name)
    name = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in name)
    return name if len(name) <= 120 else f"{name[:60]}…{name[-50:]}"
