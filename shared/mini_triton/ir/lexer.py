"""Tokens of TTIR text. One regular expression; newlines matter, since they end operations."""

from __future__ import annotations

import re
from typing import NamedTuple

from mini_triton.errors import BadProgram

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r]+|//[^\n]*)
    | (?P<newline>\n)
    | (?P<arrow>->)
    | (?P<value>%[\w$.\-]+(?:\#\d+)?)
    | (?P<block>\^[\w$.]+)
    | (?P<symbol>@(?:"[^"]*"|[\w$.\-]+))
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<tensor>tensor<(?:\d+x)*)
    | (?P<hex>0x[0-9A-Fa-f]+)
    | (?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<type>![\w.]+)
    | (?P<alias>\#[\w.]+)
    | (?P<word>[A-Za-z_][\w.$]*)
    | (?P<punct>[(){}<>\[\],:=*?+])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """`kind` is the name of the regular expression's group; `line` is in the TTIR text."""

    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    """All tokens of `text` but spaces and comments, closed by one of kind "end".

    Raises `BadProgram` at the first character that begins no token.
    """
    tokens: list[Token] = []
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadProgram(f"TTIR line {line}: unexpected character {text[position]!r}")
        kind = match.lastgroup or ""
        if kind != "space":
            tokens.append(Token(kind, match.group(), line))
        line += kind == "newline"
        position = match.end()
    tokens.append(Token("end", "", line))
    return tokens
