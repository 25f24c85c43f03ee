"""What Python has against a file, found without running it.

The file is compiled in a process of its own, with little time and memory. Compiling is not as
harmless as it sounds: 256 KiB of `def f():0` take CPython 20 seconds, and a megabyte of `a` on
lines of their own takes it 700 MB. That must not be the grader's time and memory.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from typing import Any

from grader.submission.result import LineMap, Problem, place

_CPU_SECONDS = 5
_WALL_SECONDS = 60  # a container may give us a tenth of a CPU
_MEMORY_BYTES = 512 << 20
_SHOWN_COLUMNS = 90

#: Reads a JSON list of sources; answers [index, type, message, line, column] of the first that does
#: not compile, or null.
_COMPILE = f"""
import json, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES}, {_MEMORY_BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, ({_CPU_SECONDS}, {_CPU_SECONDS}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
warnings.simplefilter("ignore")  # doubtful escapes and comparisons do run
answer = None
for index, source in enumerate(json.load(sys.stdin)):
    try:
        compile(source, "submission", "exec", dont_inherit=True)
    except SyntaxError as error:  # the base of IndentationError and TabError
        answer = [index, type(error).__name__, str(error.msg), error.lineno, error.offset]
    except (RecursionError, MemoryError):
        answer = [index, "", "", 0, 0]
    except (ValueError, OverflowError) as error:  # a number of too many digits, and the like
        answer = [index, type(error).__name__, str(error), 0, 0]
    if answer:
        break
json.dump(answer, sys.stdout)
"""

#: A source, and where its lines came from, if from a notebook.
Part = tuple[str, LineMap | None]


def check_syntax(source: str, file: str, lines: LineMap | None = None) -> Problem | None:
    """What Python has against a file, or None.

    Args:
        source: with `\\n` line ends.
        file: the declared file that it is.
        lines: where its lines came from, if from a notebook.
    """
    return check_parts([(source, lines)], file) or _check_encoding(source, file, lines)


def check_parts(parts: Sequence[Part], file: str) -> Problem | None:
    """What Python has against the first of several sources that is no Python by itself, or None."""
    sound: list[str] = []
    unfit = None
    for source, lines in parts:
        unfit = _check_characters(source, file, lines)
        if unfit:
            break
        sound.append(source)
    answer = _ask(sound)
    if answer is None:
        return unfit
    if not answer:
        return _nowhere(f"Python takes more than {_CPU_SECONDS} seconds to read it", file)
    index, kind, message, line, column = answer
    if not kind:
        return _nowhere("its expressions are nested too deeply for Python to read", file)
    if not line:
        return Problem("import error", f"{file}: {kind}: {message}", file)
    source, lines = parts[index]
    return _problem(f"{kind}: {message}", source, lines, line, column or 0, file)


def _ask(sources: list[str]) -> list[Any] | None:
    """The answer of `_COMPILE`; an empty one if there came none."""
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _COMPILE],
            input=json.dumps(sources).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return []
    if process.returncode != 0:
        return []
    answer: list[Any] | None = json.loads(process.stdout)
    return answer


def _check_characters(source: str, file: str, lines: LineMap | None) -> Problem | None:
    """Characters that no program may hold, which Python reports without a line, or not at all."""
    at = source.find("\0")
    if at >= 0:
        line = source.count("\n", 0, at) + 1
        column = at - source.rfind("\n", 0, at)
        return _problem(
            "a NUL character, which no program may hold", source, lines, line, column, file
        )
    try:
        source.encode("utf-8")
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        what = "half of a surrogate pair, which is not a character"
        return _problem(what, source, lines, line, 0, file)
    return None


def _check_encoding(source: str, file: str, lines: LineMap | None) -> Problem | None:
    """A coding comment would be obeyed when the file is imported, though it is UTF-8."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source.encode("utf-8")).readline)
    except SyntaxError as error:
        return _problem(f"{error}; save it as UTF-8", source, lines, 1, 0, file)
    if encoding != "utf-8":
        what = f"declares the encoding {encoding}; remove that comment, and save it as UTF-8"
        return _problem(what, source, lines, 1, 0, file)
    return None


def _nowhere(what: str, file: str) -> Problem:
    return Problem("import error", f"{file}: {what}; simplify it", file)


def _problem(
    what: str, source: str, lines: LineMap | None, line: int, column: int, file: str
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
