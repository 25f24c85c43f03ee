"""Reads the small parts of TTIR text: tokens, names of values, types, attributes, locations.

`operations` builds operations from them, and `parser` regions and functions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mini_triton.errors import BadProgram
from mini_triton.ir.lexer import Token, tokenize
from mini_triton.ir.locations import Locations, strip_aliases, unescaped
from mini_triton.ir.types import TORCH_DTYPE, Type
from mini_triton.location import UNKNOWN, Location


class Reader:
    """A place in the tokens of one module, and the values that are in scope there."""

    def __init__(self, text: str) -> None:
        self._locations = Locations(text)
        self._tokens = tokenize(strip_aliases(text))
        self._at = 0
        self._scopes: list[dict[str, int]] = []
        self._slot_types: dict[int, Type] = {}

    # ---------------------------------------------------------------- tokens
    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    @property
    def line(self) -> int:
        """The line that is being read, from 1."""
        return self._next.line

    def _take(self) -> Token:
        token = self._tokens[self._at]
        if token.kind == "end":
            raise BadProgram(f"TTIR line {token.line}: the text ends too early")
        self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        if self._next.text == text and self._next.kind != "string":
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error(f"expected {text!r}")

    def _error(self, what: str) -> BadProgram:
        found = self._next.text if self._next.text != "\n" else "the end of the line"
        return BadProgram(f"TTIR line {self._next.line}: {what}, found {found!r}")

    def _skip_newlines(self) -> None:
        while self._next.kind == "newline":
            self._at += 1

    # ---------------------------------------------------------------- values
    def _define(self, name: str, kind: Type) -> int:
        if name in self._scopes[-1]:
            raise self._error(f"value {name} is defined twice")
        slot = len(self._slot_types)
        self._slot_types[slot] = kind
        self._scopes[-1][name] = slot
        return slot

    def _lookup(self, name: str) -> int:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise self._error(f"value {name} is used but not defined")

    def _operand(self) -> int:
        token = self._take()
        if token.kind != "value":
            self._at -= 1
            raise self._error("expected a value")
        return self._lookup(token.text)

    # ---------------------------------------------------------------- types
    def _type(self) -> Type:
        token = self._take()
        if token.kind == "tile":
            return _tile(token.text)
        if token.kind == "tensor":
            shape = tuple(int(d) for d in token.text[len("tensor<") :].split("x") if d)
            element = self._type()
            if self._accept(","):  # a layout encoding: later stages have them, TTIR does not
                raise self._error("a layout encoding does not belong in TTIR")
            self._expect(">")
            return element.with_shape(shape)
        if token.text == "!tt.ptr":
            self._expect("<")
            pointee = self._type()
            if self._accept(","):
                self._take()  # the address space
            self._expect(">")
            return Type("ptr", (), pointee)
        if token.kind == "word" and token.text in TORCH_DTYPE:
            return Type(token.text)
        if token.kind == "type" and self._next.text == "<":  # !tt.tensordesc<…>: kept by name
            self._balanced("<", ">")
            return Type(token.text)
        if token.kind in ("word", "type"):
            return Type(token.text)
        self._at -= 1
        raise self._error("expected a type")

    def _types_in_parentheses(self) -> list[Type]:
        self._expect("(")
        types: list[Type] = []
        while not self._accept(")"):
            types.append(self._type())
            self._accept(",")
        return types

    def _type_list(self) -> list[Type]:
        """`T`, `(T, T)`, or nothing."""
        if self._next.text == "(":
            return self._types_in_parentheses()
        return [self._type()]

    def _signature(self) -> tuple[list[Type], list[Type] | None]:
        """Types after the colon: `T`, `T, T`, `A to B`, `A * B -> C, D`, `(A, B) -> C`."""
        types = self._type_list()
        results: list[Type] | None = None
        while True:
            if self._accept(",") or self._accept("*"):
                more = self._type_list()
                if results is None:
                    types += more
                else:
                    results += more
            elif self._accept("->") or self._accept("to"):
                results = self._type_list()
            else:
                return types, results

    def _balanced(self, opening: str, closing: str) -> str:
        """The text of a bracketed group, brackets included."""
        depth, parts = 0, list[str]()
        while True:
            token = self._take()
            parts.append(f" {token.text} " if token.kind == "word" else token.text)
            depth += (token.text == opening) - (token.text == closing)
            if depth == 0:
                return "".join(parts)

    # ---------------------------------------------------------------- attributes
    def _attribute_value(self) -> Any:
        token = self._take()
        if token.kind == "string":
            return unescaped(token.text[1:-1])
        if token.text in ("true", "false"):
            return token.text == "true"
        if token.kind == "number":
            value: Any = float(token.text) if _is_float(token.text) else int(token.text)
            if self._accept(":"):
                self._type()
            return value
        if token.kind == "hex":
            return int(token.text, 16)
        if token.text == "array":  # array<i32: 1, 0>
            self._expect("<")
            self._type()
            items: list[Any] = []
            if self._accept(":"):
                while self._next.text != ">":
                    items.append(self._attribute_value())
                    self._accept(",")
            self._expect(">")
            return items
        if token.text == "[":
            items = []
            while not self._accept("]"):
                items.append(self._attribute_value())
                self._accept(",")
            return items
        if self._next.text == "<":
            return token.text + self._balanced("<", ">")
        return token.text

    def _attributes(self, closing: str) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        while not self._accept(closing):
            key = self._take()
            name = key.text.strip('"')
            attrs[name] = self._attribute_value() if self._accept("=") else True
            self._accept(",")
        return attrs

    # ---------------------------------------------------------------- locations
    def _location(self) -> Location:
        """An optional `loc(…)`."""
        token = self._next
        if token.kind == "location":
            self._at += 1
            return self._locations.resolve(token.text[len("loc(") : -1])
        if token.text != "loc" or token.kind != "word":
            return UNKNOWN
        self._at += 1
        self._expect("(")
        depth, parts = 1, list[str]()
        while True:
            token = self._take()
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return self._locations.resolve("".join(parts))
            parts.append(" at " if token.text == "at" and token.kind == "word" else token.text)


@lru_cache(maxsize=1024)
def _tile(text: str) -> Type:
    """The type that a token of kind "tile" spells."""
    inside = text[len("tensor<") : -1]
    element = inside.lstrip("0123456789x")
    shape = tuple(map(int, inside[: -len(element)].split("x")[:-1]))
    if element.startswith("!"):
        return Type("ptr", shape, Type(element[len("!tt.ptr<") : -1]))
    return Type(element, shape)


def _is_float(text: str) -> bool:
    return "." in text or "e" in text or "E" in text
