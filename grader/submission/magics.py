"""Takes out of a notebook cell what IPython understands and Python does not.

    %matplotlib inline        line magics
    !pip install einops       shell lines
    rms?                      help
    files = !ls               either of them, assigned

What IPython would execute *and keep* stays: `%time y = f()` binds y, so `y = f()` is left of it.
`%timeit y = f()` runs in a function and binds nothing; it goes.

Such a line can only be where a statement begins. In a string, in brackets or after a backslash, a
line that begins with % is Python's, and stays; so the cell is read along by a small scanner that
knows strings, comments and brackets. (Python's own tokenizer stumbles over `!echo "it's"`.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(
    r"""
      (?P<comment> \#.* )
    | (?P<string> \"{3} | '{3} | " | ' )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    """,
    re.VERBOSE,
)
_ASSIGNED = re.compile(r"[A-Za-z_][\w.,\s\[\]]*=\s*(?P<what>[%!])(?!=)")
#: `%time STATEMENT`, or `name = %time EXPRESSION`: which IPython executes as if it stood alone.
_TIMED = re.compile(
    r"(?P<name>(?:[A-Za-z_][\w.,\s\[\]]*=\s*)?)"
    r"%time\s+(?:--no-raise-error\s+)?(?P<statement>[^%!\s].*)"
)
_KINDS = {"%": "the line magic", "!": "the shell line", "?": "the help line"}


@dataclass(frozen=True)
class Dropped:
    """A line that was taken out.

    Attributes:
        line: its number in the cell, from 1.
        text: the line, stripped; of `%time STATEMENT`, which leaves the statement, `%time`.
        kind: `the line magic`, `the shell line` or `the help line`.
    """

    line: int
    text: str
    kind: str


class _Scanner:
    """Reads Python line by line, and knows after each whether a statement may begin."""

    def __init__(self) -> None:
        self.quote = ""  # that closes the string we are in
        self.depth = 0  # of brackets
        self.continued = False  # the last line ended with a backslash

    @property
    def at_statement(self) -> bool:
        return not (self.quote or self.depth or self.continued)

    def feed(self, line: str) -> str:
        """Reads a line, and returns it with its strings cut out, and its comment cut off."""
        code: list[str] = []
        at = 0
        self.continued = False
        while True:
            if self.quote:
                at = self._skip_string(line, at)
                if self.quote:
                    return "".join(code)
            piece = _PIECE.search(line, at)
            if piece is None:
                code.append(line[at:])
                break
            code.append(line[at : piece.start()])
            at = piece.end()
            if piece["comment"]:
                return "".join(code)
            if piece["string"]:
                self.quote = piece["string"]
                code.append("''")
            else:
                self.depth = max(0, self.depth + (1 if piece["open"] else -1))
                code.append(piece.group())
        self.continued = line.endswith("\\")
        return "".join(code)

    def _skip_string(self, line: str, at: int) -> int:
        """Goes to the end of the string, or to that of the line."""
        end = re.compile(rf"(?:\\.|(?!{self.quote})[^\\])*{self.quote}").match(line, at)
        if end:
            self.quote = ""
            return end.end()
        backslashes = len(line) - len(line.rstrip("\\"))
        if len(self.quote) == 1 and backslashes % 2 == 0:
            self.quote = ""  # never closed: a syntax error, which ends with the line
        return len(line)


def strip_magics(lines: list[str]) -> tuple[list[str], list[Dropped]]:
    """The lines of a cell, as many as before, in which only Python is left; and what went.

    An indented line becomes `pass`, as it may be all that its block has.
    """
    scanner = _Scanner()
    kept: list[str] = []
    dropped: list[Dropped] = []
    goes_on = False  # the line taken out last ended with a backslash
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if goes_on:
            kept.append(f"{indent}# {text}")
            goes_on = text.endswith("\\")
            continue
        timed = _TIMED.fullmatch(text) if scanner.at_statement else None
        if timed:
            line = indent + timed["name"] + timed["statement"]
            scanner.feed(line)
            kept.append(line)
            dropped.append(Dropped(number, "%time", _KINDS["%"]))
            continue
        kind = _kind(text) if scanner.at_statement else ""
        if not kind:
            at_statement = scanner.at_statement
            code = scanner.feed(line)
            if not (at_statement and scanner.at_statement and code.rstrip().endswith("?")):
                kept.append(line)
                continue
            kind = _KINDS["?"]
        kept.append(f"{indent}pass  # {text}" if indent else f"# {text}")
        dropped.append(Dropped(number, text, kind))
        goes_on = text.endswith("\\") and kind != _KINDS["?"]
    return kept, dropped


def _kind(text: str) -> str:
    """What a line that begins a statement is, if it is not Python; else empty."""
    if text[:1] in _KINDS:
        return _KINDS[text[0]]
    assigned = _ASSIGNED.match(text)
    return _KINDS[assigned["what"]] if assigned else ""
