"""Makes a parsed program ready to run: handlers bound, last uses and stored-to arguments found.

An operation that the simulator does not have is refused here, before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from mini_triton.errors import UnsupportedOp
from mini_triton.execute import control
from mini_triton.execute.frame import Frame
from mini_triton.execute.liveness import peak_bytes, tile_bytes
from mini_triton.execute.memory import atomics, load_store
from mini_triton.execute.operations import (
    cast,
    debug,
    dot,
    floating,
    histogram,
    indexing,
    inline_asm,
    integer,
    libdevice,
    map_elementwise,
    pointer,
    reduce,
    scaled_dot,
    scan,
    shape,
)
from mini_triton.execute.refusals import refused
from mini_triton.execute.registry import FRAMED, LAZY, OVER, PURE, Handler
from mini_triton.execute.tiles.values import Value
from mini_triton.ir.parser import parse
from mini_triton.ir.program import Function, Op, Program, Region
from mini_triton.ir.verify import verify

#: Modules whose handlers register themselves on import.
HANDLER_MODULES = (
    atomics,
    cast,
    control,
    debug,
    dot,
    floating,
    histogram,
    indexing,
    inline_asm,
    integer,
    libdevice,
    map_elementwise,
    load_store,
    pointer,
    reduce,
    scaled_dot,
    scan,
    shape,
)

TERMINATORS = control.RETURNS | {"cf.br", "cf.cond_br", "scf.condition", "scf.yield"}
_CONSTANT = {"arith.constant", "ub.poison"}
_LOADS = {"tt.load", "tt.atomic_load"}
_STORES = {"tt.store", "tt.atomic_store"}
_LOOPS = {"scf.for", "scf.while"}
_UPDATES = {"tt.atomic_rmw", "tt.atomic_cas"}


@dataclass(frozen=True)
class Prepared:
    """A program and what executing it needs to know."""

    program: Program
    stored_to: frozenset[int] | None  # positions of the kernel's arguments; None: any of them
    loaded: frozenset[int] | None  # the same of those that it reads
    one_at_a_time: bool  # programs wait for each other (a spin lock): they must run in turn
    prints: bool
    loops: bool
    peak_bytes: int  # of one program's values, and what executing them takes
    tile_bytes: int  # of one program's values alone


@lru_cache(maxsize=512)
def prepare(ttir: str, kernel: str) -> Prepared:
    """Parses and checks the TTIR text of a kernel.

    Raises `BadProgram` (text not understood, or forged) or `UnsupportedOp` (naming operation, file
    and line).
    """
    program = parse(ttir)
    for op in program.walk():
        _bind(op, kernel)
    verify(program, kernel)
    for function in program.functions.values():
        _mark_last_uses(function)
    dot.mark_products(program)
    return Prepared(
        program,
        *_arguments_reached(program),
        _spins(program),
        any(op.name == "tt.print" for op in program.walk()),
        any(op.name in _LOOPS for op in program.walk()),
        peak_bytes(program),
        tile_bytes(program),
    )


def _bind(op: Op, kernel: str) -> None:
    if op.name in TERMINATORS:
        return
    op.framed, op.lazy, op.pure, op.over = (t.get(op.name) for t in (FRAMED, LAZY, PURE, OVER))
    refusal = refused(op)
    if refusal is not None:
        raise UnsupportedOp.at(
            op.where, kernel, refusal.what, verb=refusal.word, hint=refusal.way_out
        )
    if op.name in _CONSTANT:
        op.framed = _computed_once(op.lazy, op.pure)


def _computed_once(lazy: Handler | None, pure: Handler) -> Handler:
    """A handler of an operation without operands that keeps its value for all launches."""
    kept: list[Value] = []

    def handler(frame: Frame, op: Op) -> Value:
        if not kept:
            value = lazy(op) if lazy is not None else None
            kept.append(pure(op) if value is None else value)
        return kept[0]

    return handler


def _mark_last_uses(function: Function) -> None:
    """Fills `dead` of every operation and `used` of every operation with results."""
    used = set(_uses_of(function.body))
    for op in _operations(function.body):
        op.used = any(slot in used for slot in op.results)
    _mark_region(function.body)


def _mark_region(region: Region) -> None:
    if (
        len(region.blocks) > 1
    ):  # values may be used in later blocks: only nested regions free theirs
        for block in region.blocks:
            for op in block.ops:
                op.over = None
                for inner in op.regions:
                    _mark_region(inner)
        return
    for block in region.blocks:
        own = set(block.args) | {slot for op in block.ops for slot in op.results}
        seen: set[int] = set()
        for op in reversed(block.ops):
            for inner in op.regions:
                _mark_region(inner)
            uses = set(op.operands) | {s for r in op.regions for s in _uses_of(r)}
            op.uses = tuple(uses)
            last = (uses | set(op.results)) & own - seen
            op.dead = tuple(last) if not op.successors else ()
            if op.over is not None and not (op.types[0].shape and last & set(op.operands)):
                op.over = None  # there is no tile to write over
            seen |= uses
        block.ops[-1].dead += tuple(set(block.args) - seen)  # what nobody asked for


def _operations(region: Region) -> Iterable[Op]:
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from _operations(inner)


def _regions(region: Region) -> Iterable[Region]:
    yield region
    for op in _operations(region):
        yield from op.regions


def _uses_of(region: Region) -> Iterable[int]:
    for op in _operations(region):
        yield from op.operands
        for _, arguments in op.successors:
            yield from arguments


def _arguments_reached(
    program: Program,
) -> tuple[frozenset[int] | None, frozenset[int] | None]:
    """Positions of the kernel's pointer arguments through which it may store, and may load."""
    kernel = program.kernel
    if any(op.name in ("tt.call", "tt.int_to_ptr") for op in program.walk()):
        return None, None
    roots: dict[int, set[int]] = {slot: {n} for n, slot in enumerate(kernel.args)}
    pointers = {slot for slot, kind in program.slot_types.items() if kind.is_pointer}

    def spread(sources: Iterable[int], targets: Iterable[int]) -> bool:
        found = {root for slot in sources if slot in pointers for root in roots.get(slot, ())}
        grown = False
        for slot in targets:
            if slot in pointers and not found <= roots.setdefault(slot, set()):
                roots[slot] |= found
                grown = True
        return grown

    labelled: dict[str, list[int]] = {}  # arguments of the blocks of that name, in any region
    for region in _regions(kernel.body):
        for block in region.blocks:
            labelled.setdefault(block.label, []).extend(block.args)
    changed = True
    while changed:
        changed = False
        for op in _operations(kernel.body):
            if op.name == "tt.load" and op.types[0].is_pointer:
                return None, None
            inner = [block for region in op.regions for block in region.blocks]
            ends = [slot for block in inner for slot in block.ops[-1].operands]
            begins = [slot for block in inner for slot in block.args]
            changed |= spread((*op.operands, *ends), (*op.results, *begins))
            for label, arguments in op.successors:
                changed |= spread(arguments, labelled.get(label, ()))

    def reached(ops: Iterable[Op]) -> frozenset[int]:
        return frozenset(root for op in ops for root in roots.get(op.operands[0], ()))

    ops = list(_operations(kernel.body))
    return (
        reached(op for op in ops if op.name in _UPDATES | _STORES),
        reached(op for op in ops if (op.name in _UPDATES and op.used) or op.name in _LOADS),
    )


def _spins(program: Program) -> bool:
    """True for a kernel that loops on an atomic operation, as a lock does, or a volatile load."""
    return any(
        inner.name in _UPDATES
        or inner.name == "tt.atomic_load"
        or (inner.name == "tt.load" and inner.attrs.get("isVolatile") in (True, "true"))
        for op in program.walk()
        if op.name == "scf.while"
        for region in op.regions
        for inner in _operations(region)
    )
