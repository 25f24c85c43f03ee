"""Reads an operation without regions, from behind its name to before its location.

Most share one shape, `operands words {attributes} : types`, and one routine reads them all;
constants, calls, terminators, branches and scaled products are printed in forms of their own.
"""

from __future__ import annotations

from typing import Any

from mini_triton.ir.inference import inferred_results, number
from mini_triton.ir.program import Op
from mini_triton.ir.reader import Reader
from mini_triton.ir.types import Type


class Operations(Reader):
    """Reads single operations: each method gives one, without results, and its result types."""

    def _plain(self, name: str) -> tuple[Op, list[Type]]:
        """Operands, words and attributes in any order, then `: types`."""
        operands: list[int] = []
        words: list[str] = []
        attrs: dict[str, Any] = {}
        types: list[Type] = []
        results: list[Type] | None = None
        while self._next.kind not in ("newline", "end"):
            token = self._next
            if token.kind == "value":
                operands.append(self._operand())
            elif token.kind == "location" or token.text == "loc":
                break
            elif token.text == "{":
                self._take()
                attrs |= self._attributes("}")
            elif token.text == "<" and self._tokens[self._at + 1].text == "{":
                self._at += 2
                attrs |= self._attributes("}")
                self._expect(">")
            elif token.kind == "word":
                self._take()
                if self._accept("="):
                    attrs[token.text] = self._attribute_value()
                elif self._next.text == "<":
                    attrs[token.text] = self._balanced("<", ">")
                else:
                    words.append(token.text)
            elif token.kind == "string":
                words.append(self._attribute_value())
            elif token.text == ":":
                self._take()
                if self._next.kind == "value":  # tt.print puts its operands after a colon
                    continue
                types, results = self._signature()
                break
            elif self._accept("->"):  # no operands, so no colon: tt.elementwise_inline_asm
                results = self._type_list()
                break
            else:
                self._take()  # commas and brackets around operands
        return self._typed(name, operands, words, attrs, types, results)

    def _typed(
        self,
        name: str,
        operands: list[int],
        words: list[str],
        attrs: dict[str, Any],
        types: list[Type],
        results: list[Type] | None,
    ) -> tuple[Op, list[Type]]:
        """Fills in the result types that the printed form leaves to be inferred."""
        if results is None:
            results = inferred_results(name, types)
        elif name == "tt.split":  # printed once for its two results
            results = results * 2
        op = Op(
            name,
            tuple(operands),
            operand_types=tuple(self._slot_types[slot] for slot in operands),
            attrs=attrs,
            keywords=tuple(words),
        )
        return op, results

    def _constant(self, name: str) -> tuple[Op, list[Type]]:
        """`arith.constant 3 : i32`, `true`, `dense<…> : tensor<…>`."""
        attrs: dict[str, Any] = {}
        if self._accept("{"):
            attrs |= self._attributes("}")
        if self._accept("dense"):
            self._expect("<")
            raw: Any = [] if self._next.text == ">" else self._dense()
            self._expect(">")
        else:
            raw = self._take().text
        kind = self._type() if self._accept(":") else Type("i1")
        attrs["value"] = self._constant_value(raw, kind)
        return Op(name, attrs=attrs), [kind]

    def _dense(self) -> Any:
        if not self._accept("["):
            return self._take().text
        items = []
        while not self._accept("]"):
            items.append(self._dense())
            self._accept(",")
        return items

    def _constant_value(self, raw: Any, kind: Type) -> Any:
        if isinstance(raw, str) and raw.startswith('"'):
            raise self._error("packed dense constants are not supported")
        try:
            return number(raw, kind)
        except ValueError:
            raise self._error(f"{raw!r} is not a constant of type {kind}") from None

    def _call(self, name: str) -> tuple[Op, list[Type]]:
        callee = self._take().text.lstrip("@").strip('"')
        op, types = self._plain(name)
        op.attrs["callee"] = callee
        return op, types

    def _terminator(self, name: str) -> tuple[Op, list[Type]]:
        """`scf.yield`, `tt.return`, `scf.condition(%c) …`: operands and their types, no results."""
        op, _ = self._plain(name)
        return op, []

    def _dot_scaled(self, name: str) -> tuple[Op, list[Type]]:
        """`%a scale %s, %b scale %t, %c lhs = e2m1 rhs = e4m3 {…} : types -> type`.

        `attrs["scaled"]` says which of the two factors has a scale; operands keep the order of the
        text.
        """
        operands: list[int] = []
        scaled = [False, False]
        factor = -1
        while self._next.kind == "value" or self._next.text in (",", "scale"):
            if self._accept(","):
                continue
            if self._accept("scale"):
                if factor not in (0, 1):
                    raise self._error(f"{name} scales its first two operands only")
                scaled[factor] = True
            else:
                factor += 1
            operands.append(self._operand())
        op, types = self._plain(name)
        op.operands = tuple(operands)
        op.operand_types = tuple(self._slot_types[slot] for slot in operands)
        op.attrs["scaled"] = tuple(scaled)
        if len(operands) != 3 + sum(scaled):
            raise self._error(f"{name} takes two factors and a sum")
        return op, types

    def _branch(self, name: str) -> tuple[Op, list[Type]]:
        """`cf.br ^bb1(%a : T)` and `cf.cond_br %c, ^bb1(…), ^bb2(…)`."""
        operands: list[int] = []
        successors: list[tuple[str, tuple[int, ...]]] = []
        while self._next.kind in ("value", "block") or self._next.text == ",":
            token = self._next
            if token.kind == "value":
                operands.append(self._operand())
                continue
            self._take()
            if token.kind != "block":
                continue
            args: list[int] = []
            if self._accept("("):
                while self._next.kind == "value":
                    args.append(self._operand())
                    self._accept(",")
                if self._accept(":"):
                    self._signature()
                self._expect(")")
            successors.append((token.text, tuple(args)))
        if self._accept("{"):
            self._attributes("}")
        op = Op(
            name,
            tuple(operands),
            operand_types=tuple(self._slot_types[slot] for slot in operands),
            successors=tuple(successors),
        )
        return op, []


#: The methods that read the operations with a form of their own, by name.
OWN_FORM = {
    "arith.constant": Operations._constant,
    "tt.call": Operations._call,
    "tt.return": Operations._terminator,
    "scf.yield": Operations._terminator,
    "scf.condition": Operations._terminator,
    "tt.reduce.return": Operations._terminator,
    "tt.scan.return": Operations._terminator,
    "tt.map_elementwise.return": Operations._terminator,
    "tt.dot_scaled": Operations._dot_scaled,
    "cf.br": Operations._branch,
    "cf.cond_br": Operations._branch,
}
