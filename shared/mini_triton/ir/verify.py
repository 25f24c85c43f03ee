"""Checks a parsed program as Triton's own verifiers have: types, regions, branches, calls.

In grading, programs come as text from a process that may send anything. What passes here is of a
shape that the executor can rely on; what does not is refused by name before anything runs. The
rules of single operations are in `rules`.
"""

from __future__ import annotations

from mini_triton.errors import BadProgram, UnsupportedOp
from mini_triton.ir.program import Block, Function, Op, Program, Region
from mini_triton.ir.rules import RULES
from mini_triton.ir.rules.checking import Violation, is_int, is_truth, need
from mini_triton.ir.types import TORCH_DTYPE, Type
from mini_triton.location import UNKNOWN, Location

#: Triton's own bound (TRITON_MAX_TENSOR_NUMEL): its front end refuses larger tiles.
MOST_ELEMENTS = 1 << 20
#: Regions within regions, and pointers to pointers. Triton's front end is itself recursive.
DEEPEST = 100

#: What may end a block of a function or of a region that runs on lanes.
_BRANCHES = {"cf.br": 1, "cf.cond_br": 2}
#: What ends the regions that run on lanes, where there are no programs to load or store for.
_ON_LANES = {
    "tt.reduce": "tt.reduce.return",
    "tt.scan": "tt.scan.return",
    "tt.map_elementwise": "tt.map_elementwise.return",
}
_EFFECTS = {
    "tt.load",
    "tt.store",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.atomic_load",
    "tt.atomic_store",
    "tt.print",
    "tt.assert",
}
_ENDS = {*_ON_LANES.values(), *_BRANCHES, "tt.return", "scf.yield", "scf.condition"}


def verify(program: Program, kernel: str) -> None:
    """Raises `BadProgram`, which names the operation and its line, unless the program is sound.

    Raises `UnsupportedOp` for a type that the simulator does not have.
    """
    _Verifier(program, kernel).program()


class _Verifier:
    def __init__(self, program: Program, kernel: str) -> None:
        self._program = program
        self._kernel = kernel
        self._types = program.slot_types
        self._on_lanes_too: set[str] = set()  # functions that are called from such regions

    def program(self) -> None:
        """All of it."""
        for kind in set(self._types.values()):
            self._type(kind)
        for function in self._program.functions.values():
            self._function(function)
        self._no_recursion()

    def _bad(self, where: Location, what: str) -> BadProgram:
        return BadProgram.at(
            where, self._kernel, what, why="Triton's front end makes no such program"
        )

    def _type(self, kind: Type) -> None:
        depth, inner = 0, kind
        while inner.pointee is not None:
            depth, inner = depth + 1, inner.pointee
        if inner.element == "ptr" or depth > DEEPEST:
            raise self._bad(UNKNOWN, "a pointer points to nothing")
        if inner.element not in TORCH_DTYPE:
            raise UnsupportedOp.at(
                UNKNOWN,
                self._kernel,
                f"values of type {inner.element[:40]}, which the simulator does not have",
                hint="use types that torch has, too",
            )
        if any(n < 1 or n & (n - 1) for n in kind.shape) or inner.shape != kind.shape * (not depth):
            raise self._bad(UNKNOWN, f"there is a tile {kind}, whose sizes are no powers of two")
        if kind.numel > MOST_ELEMENTS:
            raise self._bad(
                UNKNOWN, f"there is a tile {kind}; a tile has at most {MOST_ELEMENTS:,} elements"
            )

    # ---------------------------------------------------------------- functions, regions
    def _function(self, function: Function) -> None:
        if self._kinds(function.args) != function.arg_types:
            raise self._bad(function.where, f"the arguments of {function.name} have other types")
        if function is self._program.kernel and function.result_types:
            raise self._bad(function.where, "a kernel returns nothing")
        self._blocks(function.body, "tt.return", function.result_types, function.where, 0, False)

    def _blocks(
        self,
        region: Region,
        end: str,
        returned: tuple[Type, ...],
        where: Location,
        depth: int,
        lanes: bool,
    ) -> None:
        """A region of blocks that branch to each other or end with `end` and values `returned`."""
        blocks = {block.label: block for block in region.blocks}
        if len(blocks) != len(region.blocks):
            raise self._bad(where, "two blocks have one label")
        for block in region.blocks:
            last = self._block(block, where, depth, lanes)
            if last.name in _BRANCHES:
                self._branch(last, blocks)
            elif last.name != end or self._kinds(last.operands) != returned:
                kinds = ", ".join(map(str, returned))
                raise self._bad(last.where or where, f"block {block.label} has to return ({kinds})")

    def _branch(self, op: Op, blocks: dict[str, Block]) -> None:
        targets = _BRANCHES[op.name]
        kinds = self._kinds(op.operands)
        conditions = (Type("i1"),) if targets == 2 else ()
        if len(op.successors) != targets or kinds != conditions:
            raise self._bad(op.where, f"{op.name} has {targets} targets")
        for label, arguments in op.successors:
            block = blocks.get(label)
            if block is None or self._kinds(block.args) != self._kinds(arguments):
                raise self._bad(op.where, f"{op.name} goes to {label} with the wrong values")

    def _block(self, block: Block, where: Location, depth: int, lanes: bool) -> Op:
        """All operations; the last one, which ends the block."""
        if not block.ops or block.ops[-1].name not in _ENDS:
            raise self._bad(where, f"block {block.label} has no end")
        for op in block.ops[:-1]:
            if op.name in _ENDS:
                raise self._bad(op.where, f"{op.name} is not the last operation of its block")
            self._op(op, depth, lanes)
        last = block.ops[-1]
        if last.results or last.regions:
            raise self._bad(last.where, f"{last.name} has no results and no regions")
        return last

    def _kinds(self, slots: tuple[int, ...]) -> tuple[Type, ...]:
        return tuple(self._types[slot] for slot in slots)

    # ---------------------------------------------------------------- operations
    def _op(self, op: Op, depth: int, lanes: bool) -> None:
        if depth > DEEPEST:
            raise self._bad(op.where, "regions are nested too deeply")
        if lanes and op.name in _EFFECTS:
            raise self._bad(op.where, f"{op.name} stands in a function of lanes, not of programs")
        if op.successors:
            raise self._bad(op.where, f"{op.name} has no targets")
        try:
            rule = RULES.get(op.name)
            if rule is not None:
                rule(op)
            if op.name in _ON_LANES:
                self._on_lanes(op, depth)
            elif op.name in _CONTROL:
                _CONTROL[op.name](self, op, depth, lanes)
            elif op.name == "tt.call":
                self._call(op, lanes)
            elif op.regions:
                raise Violation("it has no regions")
        except Violation as violation:
            raise self._bad(op.where, f"{op.name}: {violation}") from None

    def _on_lanes(self, op: Op, depth: int) -> None:
        need(len(op.regions) == 1, "it has one region")
        body = op.regions[0]
        packed = op.attrs.get("pack", 1)
        need(type(packed) is int and 1 <= packed <= MOST_ELEMENTS, "its pack is no number")
        scalars = tuple(kind.with_shape(()) for kind in op.operand_types)
        given = tuple(kind for kind in scalars for _ in range(packed))
        if op.name != "tt.map_elementwise":
            given = (*scalars, *scalars)
        need(self._kinds(body.entry.args) == given, "its region takes other values")
        returned = tuple(kind.with_shape(()) for kind in op.types for _ in range(packed))
        self._blocks(body, _ON_LANES[op.name], returned, op.where, depth + 1, True)

    def _call(self, op: Op, lanes: bool) -> None:
        function = self._program.functions.get(str(op.attrs.get("callee")))
        need(function is not None, "there is no such function")
        assert function is not None
        need(op.operand_types == function.arg_types, "its arguments have other types")
        need(op.types == function.result_types, "its results have other types")
        need(not op.regions, "it has no regions")
        if lanes and function.name not in self._on_lanes_too:
            self._on_lanes_too.add(function.name)
            for inner in all_operations(function.body):
                need(inner.name not in _EFFECTS, f"{inner.name} is called in a function of lanes")
                if inner.name == "tt.call":
                    self._call(inner, lanes)

    def _one_block(
        self, op: Op, region: Region, end: str, depth: int, lanes: bool
    ) -> tuple[Block, tuple[Type, ...]]:
        """The only block of a region, and what it ends with."""
        need(len(region.blocks) == 1, "its region has one block")
        last = self._block(region.entry, op.where, depth + 1, lanes)
        need(last.name == end, f"its region ends with {end}")
        return region.entry, self._kinds(last.operands)

    def _for(self, op: Op, depth: int, lanes: bool) -> None:
        need(len(op.regions) == 1 and len(op.operands) >= 3, "it has bounds, a step and a body")
        bounds, carried = op.operand_types[:3], op.operand_types[3:]
        counter = bounds[0]
        need(is_int(counter) and not counter.shape and not is_truth(counter), f"from {counter}")
        need(bounds == (counter,) * 3, "its bounds and its step differ in type")
        block, yielded = self._one_block(op, op.regions[0], "scf.yield", depth, lanes)
        need(self._kinds(block.args) == (counter, *carried), "its body takes other values")
        need(yielded == carried == op.types, "its body yields other values")

    def _if(self, op: Op, depth: int, lanes: bool) -> None:
        need(op.operand_types == (Type("i1"),), "it decides by one truth value")
        need(len(op.regions) == 2 or (len(op.regions) == 1 and not op.types), "it has no else")
        for region in op.regions:
            block, yielded = self._one_block(op, region, "scf.yield", depth, lanes)
            need(not block.args and yielded == op.types, "a branch yields other values")

    def _while(self, op: Op, depth: int, lanes: bool) -> None:
        need(len(op.regions) == 2, "it has two regions")
        carried = self._kinds(op.operands)
        before, passed = self._one_block(op, op.regions[0], "scf.condition", depth, lanes)
        need(self._kinds(before.args) == carried, "it begins with other values")
        need(passed == (Type("i1"), *op.types), "its condition passes other values on")
        after, yielded = self._one_block(op, op.regions[1], "scf.yield", depth, lanes)
        need(self._kinds(after.args) == op.types, "its body takes other values")
        need(yielded == carried, "its body yields other values")

    # ---------------------------------------------------------------- calls
    def _no_recursion(self) -> None:
        """Functions that call each other in a circle would never end."""
        calls = {
            name: {
                str(op.attrs["callee"])
                for op in all_operations(function.body)
                if op.name == "tt.call"
            }
            for name, function in self._program.functions.items()
        }
        while calls:
            leaves = {name for name, callees in calls.items() if not callees & calls.keys()}
            if not leaves:
                name = min(calls)
                raise self._bad(self._program.functions[name].where, f"{name} calls itself")
            calls = {name: callees for name, callees in calls.items() if name not in leaves}


def all_operations(region: Region) -> list[Op]:
    """Those of all blocks, and of the regions in them."""
    found: list[Op] = []
    pending = [region]
    while pending:
        for block in pending.pop().blocks:
            for op in block.ops:
                found.append(op)
                pending.extend(op.regions)
    return found


_CONTROL = {
    "scf.for": _Verifier._for,
    "scf.if": _Verifier._if,
    "scf.while": _Verifier._while,
}
