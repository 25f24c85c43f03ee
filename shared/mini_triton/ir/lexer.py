"""Tokens of TTIR text. One regular expression; newlines matter, since they end operations."""

from __future__ import annotations

import re
from typing import NamedTuple

from mini_triton.errors import BadProgram

_TOKEN = re.compile(
    r"""
    [ \t\r]*
    (?: (?P<location>loc\(\#loc\d*\))
    | (?P<value>%[\w$.\-]+(?:\#\d+)?)
    | (?P<tile>tensor<(?:\d+x)+(?:[A-Za-z]\w*|!tt\.ptr<[A-Za-z]\w*>)>)
    | (?P<newline>\n)
    | (?P<comment>//[^\n]*)
    | (?P<arrow>->)
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
    | (?P<space>[ \t\r]|\Z) )
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """`kind` is the name of the regular expression's group; `line` is in the TTIR text.

    `location` is a `loc` of one alias, `tile` the type of a tile of numbers or pointers: most
    locations and types are those, and one token each is read faster than six.
    """

    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    """All tokens of `text` but spaces and comments, closed by one of kind "end".

    Raises `BadProgram` at the first character that begins no token.
    """
    tokens: list[Token] = []
    end, line = 0, 1
    for match in _TOKEN.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        kind = match.lastgroup or ""
        if kind == "space" or kind == "comment":
            continue
        tokens.append(Token(kind, match[kind], line))
        line += kind == "newline"
    if end != len(text):
        unexpected = text[end:].lstrip(" \t\r")[:1]
        raise BadProgram(f"TTIR line {line}: unexpected character {unexpected!r}")
    tokens.append(Token("end", "", line))
    return tokens
