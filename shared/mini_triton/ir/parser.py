"""TTIR text → `Program`. A recursive-descent parser of what Triton's printer writes.

Here are the module, its functions, and what nests: regions, and the operations that have some. All
other operations are read in `operations`, and what they consist of in `reader`.
Whether the simulator can execute an operation is not decided here but in `execute.prepare`.
"""

from __future__ import annotations

from typing import Any

from mini_triton.errors import BadProgram
from mini_triton.ir.operations import OWN_FORM, Operations
from mini_triton.ir.program import Block, Function, Op, Program, Region
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


class _Parser(Operations):
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
            op, types = self._printed(name)
        op.where = self._location()
        if self._next.kind not in ("newline", "end"):
            raise self._error(f"the operation {name} should end here")
        if sum(count for _, count in names) != len(types) or any(n < 1 for _, n in names):
            raise self._error(f"{name} gives {len(types)} results")
        op.types = tuple(types)
        op.results = self._define_results(names, types)
        return op

    def _printed(self, name: str) -> tuple[Op, list[Type]]:
        """An operation in the form that is its own, or in the one that most share."""
        if name in _WITH_REGIONS:
            return _WITH_REGIONS[name](self, name)
        own = OWN_FORM.get(name)
        return own(self, name) if own else self._plain(name)

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


_WITH_REGIONS = {"scf.for": _Parser._for, "scf.while": _Parser._while, "scf.if": _Parser._if}
