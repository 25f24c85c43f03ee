"""TTIR text → `Program`. A recursive-descent parser of what Triton's printer writes.

Most operations share one shape, `%r = name operands words {attributes} : types loc(…)`, and one
routine reads them all; constants, calls, branches and operations with regions have their own.
Whether the simulator can execute an operation is not decided here but in `execute.prepare`.
"""

from __future__ import annotations

from typing import Any

from mini_triton.errors import BadProgram
from mini_triton.ir.inference import inferred_results, number
from mini_triton.ir.program import Block, Function, Op, Program, Region
from mini_triton.ir.reader import Reader
from mini_triton.ir.types import Type


def parse(text: str) -> Program:
    """Parses a TTIR module with exactly one public function.

    Raises `BadProgram` naming the TTIR line and what was expected there.
    """
    parser = _Parser(text)
    try:
        return parser.module()
    except RecursionError:
        raise BadProgram("the TTIR text is nested too deeply") from None
    except (LookupError, ValueError, TypeError, OverflowError, StopIteration) as error:
        raise BadProgram(f"TTIR line {parser.line}: it cannot be read: {error}") from None


class _Parser(Reader):
    # ---------------------------------------------------------------- module and functions
    def module(self) -> Program:
        """The whole text."""
        self._skip_newlines()
        self._expect("module")
        if self._accept("attributes"):
            self._balanced("{", "}")
        self._expect("{")
        functions: dict[str, Function] = {}
        kernels: list[Function] = []
        while True:
            self._skip_newlines()
            if self._accept("}"):
                break
            public, function = self._function()
            if function.name in functions:
                raise self._error(f"there is a second function {function.name}")
            functions[function.name] = function
            if public:
                kernels.append(function)
        if len(kernels) != 1:
            raise BadProgram(f"a module has one public function, this one has {len(kernels)}")
        return Program(kernels[0], functions, self._slot_types)

    def _function(self) -> tuple[bool, Function]:
        self._expect("tt.func")
        visibility = self._take().text if self._next.kind == "word" else "public"
        name = self._take().text.lstrip("@").strip('"')
        self._scopes.append({})
        self._expect("(")
        args = self._block_arguments(")")
        results = self._type_list() if self._accept("->") else []
        if self._accept("attributes"):
            self._balanced("{", "}")
        body = self._region(named_entry=args)
        where = self._location()
        self._scopes.pop()
        types = tuple(self._slot_types[slot] for slot in args)
        return visibility == "public", Function(name, args, types, body, tuple(results), where)

    def _block_arguments(self, closing: str) -> tuple[int, ...]:
        """`%a: T {attrs} loc(…), …` up to `closing`; defines each."""
        slots = []
        while not self._accept(closing):
            name = self._take().text
            self._expect(":")
            slots.append(self._define(name, self._type()))
            if self._next.text == "{":
                self._balanced("{", "}")
            self._location()
            self._accept(",")
        return tuple(slots)

    def _region(self, named_entry: tuple[int, ...] = ()) -> Region:
        """`{ ops ^bb1(args): ops … }`; `named_entry`: arguments already defined by the parent."""
        self._expect("{")
        self._scopes.append({})
        blocks = [Block("entry", named_entry, [])]
        while True:
            self._skip_newlines()
            if self._accept("}"):
                break
            if self._next.kind == "block":
                label = self._take().text
                args = self._block_arguments(")") if self._accept("(") else ()
                self._expect(":")
                if len(blocks) == 1 and not blocks[0].ops and not named_entry:
                    blocks[0] = Block(label, args, [])
                else:
                    blocks.append(Block(label, args, []))
                continue
            blocks[-1].ops.append(self._op())
        self._scopes.pop()
        return Region(blocks)

    # ---------------------------------------------------------------- operations
    def _op(self) -> Op:
        names = self._result_names()
        token = self._take()
        name = token.text.strip('"')
        if token.kind == "string":
            op, types = self._generic(name)
        else:
            special = _SPECIAL.get(name)
            op, types = special(self, name) if special else self._plain(name)
        op.where = self._location()
        if self._next.kind not in ("newline", "end"):
            raise self._error(f"the operation {name} should end here")
        if sum(count for _, count in names) != len(types) or any(n < 1 for _, n in names):
            raise self._error(f"{name} gives {len(types)} results")
        op.types = tuple(types)
        op.results = self._define_results(names, types)
        return op

    def _result_names(self) -> list[tuple[str, int]]:
        """`%a, %b:2 =` before an operation's name."""
        names: list[tuple[str, int]] = []
        if self._next.kind != "value":
            return names
        while not self._accept("="):
            name = self._take().text
            names.append((name, int(self._take().text) if self._accept(":") else 1))
            self._accept(",")
        return names

    def _define_results(self, names: list[tuple[str, int]], types: list[Type]) -> tuple[int, ...]:
        slots: list[int] = []
        kinds = iter(types)
        for name, count in names:
            if count == 1:
                slots.append(self._define(name, next(kinds)))
            else:
                slots += [self._define(f"{name}#{i}", next(kinds)) for i in range(count)]
        return tuple(slots)

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

    def _generic(self, name: str) -> tuple[Op, list[Type]]:
        """`"name"(operands) <{attrs}> ({region}, …) {attrs} : (types) -> types`."""
        self._expect("(")
        operands = []
        while not self._accept(")"):
            operands.append(self._operand())
            self._accept(",")
        attrs: dict[str, Any] = {}
        if self._accept("<"):
            self._expect("{")
            attrs |= self._attributes("}")
            self._expect(">")
        regions = []
        if self._accept("("):
            while not self._accept(")"):
                regions.append(self._region())
                self._accept(",")
        if self._accept("{"):
            attrs |= self._attributes("}")
        self._expect(":")
        types, results = self._signature()
        op, results = self._typed(name, operands, [], attrs, types, results or [])
        op.regions = tuple(regions)
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

    # ---------------------------------------------------------------- structured control flow
    def _initial_values(self) -> tuple[list[str], list[int]]:
        """`(%a = %init, …)`: names to define in the region, slots of the initial values."""
        names, slots = [], []
        self._expect("(")
        while not self._accept(")"):
            names.append(self._take().text)
            self._expect("=")
            slots.append(self._operand())
            self._accept(",")
        return names, slots

    def _for(self, name: str) -> tuple[Op, list[Type]]:
        """`scf.for %i = %lb to %ub step %s iter_args(…) -> (types) : T { … }`."""
        unsigned = self._accept("unsigned")
        counter = self._take().text
        self._expect("=")
        lower = self._operand()
        self._expect("to")
        upper = self._operand()
        self._expect("step")
        step = self._operand()
        names: list[str] = []
        inits: list[int] = []
        if self._accept("iter_args"):
            names, inits = self._initial_values()
        types = self._type_list() if self._accept("->") else []
        kind = self._type() if self._accept(":") else Type("i32")
        self._scopes.append({})
        args = (self._define(counter, kind), *map(self._define, names, types))
        body = _yielding(self._region(named_entry=args))
        self._scopes.pop()
        attrs = self._attributes("}") if self._accept("{") else {}
        operands = (lower, upper, step, *inits)
        op = Op(
            name,
            operands,
            operand_types=tuple(self._slot_types[slot] for slot in operands),
            attrs=attrs | {"unsigned": unsigned},
            regions=(body,),
        )
        return op, types

    def _while(self, name: str) -> tuple[Op, list[Type]]:
        """`scf.while (%a = %init) : (types) -> (types) { … } do { ^bb0(…): … }`."""
        names, inits = self._initial_values() if self._next.text == "(" else ([], [])
        self._expect(":")
        init_types = self._types_in_parentheses()
        self._expect("->")
        types = self._type_list()
        self._scopes.append({})
        args = tuple(map(self._define, names, init_types))
        before = self._region(named_entry=args)
        self._scopes.pop()
        self._expect("do")
        after = self._region()
        attrs = {}
        if self._accept("attributes") and self._accept("{"):
            attrs = self._attributes("}")
        op = Op(
            name,
            tuple(inits),
            operand_types=tuple(init_types),
            attrs=attrs,
            regions=(before, after),
        )
        return op, types

    def _if(self, name: str) -> tuple[Op, list[Type]]:
        """`scf.if %c -> (types) { … } else { … }`."""
        condition = self._operand()
        types = self._type_list() if self._accept("->") else []
        regions = [_yielding(self._region())]
        if self._accept("else"):
            regions.append(_yielding(self._region()))
        attrs = self._attributes("}") if self._accept("{") else {}
        op = Op(
            name,
            (condition,),
            operand_types=(self._slot_types[condition],),
            attrs=attrs,
            regions=tuple(regions),
        )
        return op, types


def _yielding(region: Region) -> Region:
    """The region with the `scf.yield` that the printer leaves out when nothing is yielded."""
    ops = region.entry.ops
    if not ops or ops[-1].name != "scf.yield":
        ops.append(Op("scf.yield"))
    return region


_SPECIAL = {
    "arith.constant": _Parser._constant,
    "tt.call": _Parser._call,
    "tt.return": _Parser._terminator,
    "scf.yield": _Parser._terminator,
    "scf.condition": _Parser._terminator,
    "tt.reduce.return": _Parser._terminator,
    "tt.scan.return": _Parser._terminator,
    "tt.map_elementwise.return": _Parser._terminator,
    "tt.dot_scaled": _Parser._dot_scaled,
    "cf.br": _Parser._branch,
    "cf.cond_br": _Parser._branch,
    "scf.for": _Parser._for,
    "scf.while": _Parser._while,
    "scf.if": _Parser._if,
}
