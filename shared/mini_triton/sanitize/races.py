"""Races: two programs of a launch use one element, one of them writes it, and nothing orders them.

On a GPU programs run side by side and in any order, so that what the later one finds is a matter
of chance. Atomic operations may meet on an element, but not a plain access; order comes from atomic
operations that release and acquire (`clocks`).

Programs that store *equal* bits to an element are no race here: whichever is last, the element is
the same, and a GPU stores an element of up to 8 bytes at once. (A load of that element by another
program is one.) A volatile load counts as atomic: code that waits for a flag reads it so.

Two lanes of one store that write different values to one element are found as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mini_triton.checks import RACES
from mini_triton.execute.memory.active import expand_all
from mini_triton.execute.memory.observe import Access
from mini_triton.execute.tiles.values import Buffer
from mini_triton.finding import Finding, Place, Verb, times
from mini_triton.ir.program import Op, Program, Region
from mini_triton.sanitize.clocks import ATOMICS, Clocks, local, orders
from mini_triton.sanitize.shadow import Array, Shadow, Touched, bits, element

if TYPE_CHECKING:
    from mini_triton.execute.machine import Machine

_DONE: dict[Verb, str] = {"load": "loaded", "store": "stored", "atomic": "updated"}
_DOES: dict[Verb, str] = {"load": "loads", "store": "stores", "atomic": "updates"}


@dataclass
class Races:
    """Looks for races; an observer's check.

    Two programs are kept of those that have loaded an element, and of those that have updated it:
    the first, and the last other one. Without clocks that suffices to find every race, as a third
    program differs from one of them; with clocks some may be missed, and none is made up.
    """

    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    _ops: list[Op] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)
    _clocks: Clocks | None = None
    _shift: int = 0
    mask: int = 0
    dtype: type = np.int64
    _part: dict[int, set[int]] = field(default_factory=dict)  # by tensor: operations in findings

    def begin(self, shadow: Shadow) -> None:
        """Nothing is known before the first access."""

    def finish(self, shadow: Shadow) -> None:
        """All is found by then."""

    def wants(self, access: Access) -> bool:
        """Nothing is written to most tensors that are loaded."""
        return access.kind != "load" or access.buffer.stored_to

    def access(self, access: Access, touched: Touched) -> None:
        """Compares an access with those before it, then keeps it."""
        if not self._shift:
            self._prepare(access.frame.machine)
        steps = None if self._clocks is None else self._clocks.now(touched.programs)
        codes: Array = (touched.programs | (self._number(access.op) << self._shift)).astype(
            self.dtype
        )
        look = _Look(self, access, touched, codes, steps)
        op = access.op
        atomic = op.name in ATOMICS and not local(op)
        if access.kind == "load" and not (atomic or op.attrs.get("isVolatile")):
            for use in ("written", "updated", "updated other"):
                look.against(use)
            look.keep("loaded")
        elif access.kind == "load" or atomic:
            look.against("written")
            if access.kind != "load":
                look.against("loaded")
                look.against("loaded other")
            look.keep("updated")
        else:
            for use in ("loaded", "loaded other", "updated", "updated other"):
                look.against(use)
            look.store()
        if self._clocks is not None and op.name in ATOMICS:
            at, programs = touched.at[:: touched.units], touched.programs[:: touched.units]
            self._clocks.pass_on(op, touched.region, at, programs)

    def _prepare(self, machine: Machine) -> None:
        """A code, of an operation and a program, has 32 bits if these suffice."""
        programs = math.prod(machine.grid)
        self._shift = programs.bit_length()
        self.mask = (1 << self._shift) - 1
        operations = len(machine.program.walk())
        self.dtype = np.int32 if self._shift + operations.bit_length() < 32 else np.int64
        if orders(machine.program):
            self._clocks = Clocks(programs)

    def _number(self, op: Op) -> int:
        if id(op) not in self._numbers:
            self._numbers[id(op)] = len(self._ops)
            self._ops.append(op)
        return self._numbers[id(op)]

    def seen(self, programs: Array, others: Array, steps: Array) -> Array:
        """Which of the others' steps the programs have seen."""
        assert self._clocks is not None
        return self._clocks.ordered(programs, others, steps)

    def found(self, access: Access, touched: Touched, lane: int, code: int, count: int) -> None:
        """Notes a race of a lane's program with the access that a code stands for."""
        other = self._ops[code >> self._shift]
        key = (access.buffer.position, id(access.op), id(other))
        part = self._part.setdefault(access.buffer.position, set())
        if not part >= {id(access.op), id(other)}:
            part |= {id(access.op), id(other)}
            program, before = int(touched.programs[lane]), code & self.mask
            index = element(touched.region, int(touched.at[lane]), access.buffer)
            self.findings[key] = _race(access, program, other, before, index, count)


class _Look:
    """One access beside the tables of its region. `codes`: operation and program of each unit."""

    def __init__(
        self, races: Races, access: Access, touched: Touched, codes: Array, steps: Array | None
    ) -> None:
        self._races, self._access, self._touched = races, access, touched
        self._codes, self._steps = codes, steps

    def against(self, name: str, but: Array | None = None) -> None:
        """Reports units that another program has used so, unordered; not those marked in `but`."""
        at, region = self._touched.at, self._touched.region
        if not region.has(name):
            return
        codes = self._table(name)[at]
        clash = (codes >= 0) & ((codes & self._races.mask) != self._touched.programs)
        if but is not None:
            clash &= ~but
        if not clash.any():
            return
        lanes = clash.nonzero()[0]
        if self._steps is not None:
            others, steps = codes[lanes] & self._races.mask, region.table(f"{name} at")[at[lanes]]
            lanes = lanes[~self._races.seen(self._touched.programs[lanes], others, steps)]
        if len(lanes):
            first = int(lanes[0])
            count = len(np.unique(at[lanes])) // self._touched.units
            self._races.found(self._access, self._touched, first, int(codes[first]), count)

    def keep(self, name: str) -> None:
        """Keeps the first program that uses a unit, and the last other one."""
        first = self._table(name)[self._touched.at]
        other = (first >= 0) & ((first & self._races.mask) != self._touched.programs)
        self._set(name, ~other)
        first = self._table(name)[self._touched.at]
        other = (first & self._races.mask) != self._touched.programs
        if other.any():
            self._set(f"{name} other", other)

    def store(self) -> None:
        """Compares a store with earlier ones and with its own lanes, then keeps it."""
        at, region = self._touched.at, self._touched.region
        values = self._values()
        lanes = np.arange(len(at), dtype=np.int32)
        table = region.table("lane", 0, np.int32)
        table[at] = lanes  # of lanes on one unit, the last one stays
        winner = table[at]
        clash = winner != lanes
        if clash.any():
            programs = self._touched.programs
            if values is None:
                clash = programs[winner] != programs
            else:
                clash &= values[winner] != values
            lost = clash.nonzero()[0]
            if len(lost):
                first = int(lost[0])
                count = len(np.unique(at[lost])) // self._touched.units
                code = int(self._codes[winner[first]])
                self._races.found(self._access, self._touched, first, code, count)
        if region.has("written"):
            self.against("written", but=None if values is None else values == self._memory())
        self._set("written", None)

    def _set(self, name: str, where: Array | None) -> None:
        """Puts codes, and steps if there are clocks, at all units or some."""
        at, codes, steps = self._touched.at, self._codes, self._steps
        if where is not None and not where.all():
            at, codes = at[where], codes[where]
            steps = None if steps is None else steps[where]
        self._table(name)[at] = codes
        if steps is not None:
            self._touched.region.table(f"{name} at", 0, np.int32)[at] = steps

    def _table(self, name: str) -> Array:
        return self._touched.region.table(name, -1, self._races.dtype)

    def _values(self) -> Array | None:
        """The bits that each unit is to get: those of its whole element; None if unknown."""
        access = self._access
        if access.values is None or access.kind != "store":
            return None
        full = expand_all(access.frame, access.values, access.shape)
        lanes = full.reshape(-1) if access.mask is None else full[access.mask]
        return np.repeat(bits(lanes).numpy(), self._touched.units)

    def _memory(self) -> Array:
        """The bits that the element of each unit has now."""
        access = self._access
        flat = access.buffer.as_dtype(access.pointer.dtype)
        lanes = access.offsets.reshape(-1) if access.mask is None else access.offsets[access.mask]
        return np.repeat(bits(flat).numpy()[lanes.numpy()], self._touched.units)


def _verb(op: Op) -> Verb:
    if op.name in ("tt.atomic_rmw", "tt.atomic_cas"):
        return "atomic"
    return "store" if "store" in op.name else "load"


def named(buffer: Buffer, index: tuple[int, ...]) -> str:
    """`x_ptr[3, 0]`."""
    return f"{buffer.name}[{', '.join(map(str, index))}]"


def _race(
    access: Access, program: int, other: Op, before: int, index: tuple[int, ...], count: int
) -> Finding:
    machine, op = access.frame.machine, access.op
    here, there = machine.program_id(program), machine.program_id(before)
    verb, other_verb = _verb(op), _verb(other)
    what = named(access.buffer, index)
    same = program == before
    if same:
        message = (
            f"two lanes of one store, of program {here}, write different values to {what}"
            f"{times(count)}"
        )
        why = "which of them stays is a matter of chance"
        hint = "give each lane an element of its own, or mask all but one off"
    else:
        message = (
            f"{what}{times(count)} is {_DONE[other_verb]} by program {there} and {_DONE[verb]} by "
            f"program {here}, and nothing orders the two"
        )
        why = (
            "programs run side by side and in any order, so what ends up there, or is read, is a "
            "matter of chance"
        )
        hint = _remedy(machine.program, op, other)
    places = [Place.of(op.where, verb, f"program {here} {_DOES[verb]} {what}")]
    if other is not op:
        does = f"program {there} {_DOES[other_verb]} {what}"
        places.append(Place.of(other.where, other_verb, does))
    return Finding(
        RACES,
        message,
        machine.kernel,
        tuple(places),
        access.buffer.name,
        index,
        (here,) if same else (here, there),
        why,
        hint,
    )


def _polls(program: Program) -> bool:
    """Whether a loop of the kernel waits for what a volatile load reads."""
    loops = (op for op in program.walk() if op.name == "scf.while")
    return any(_volatile(region) for loop in loops for region in loop.regions)


def _volatile(region: Region) -> bool:
    """Whether a volatile load is inside."""
    return any(
        (op.name == "tt.load" and op.attrs.get("isVolatile") in (True, "true"))
        or any(_volatile(inner) for inner in op.regions)
        for block in region.blocks
        for op in block.ops
    )


def _remedy(program: Program, op: Op, other: Op) -> str:
    if local(op) or local(other):
        return 'an atomic of scope="cta" is atomic within a program only: use scope="gpu"'
    if _polls(program):
        return (
            "set the flag with tl.atomic_xchg, and wait with tl.atomic_add(flag, 0) or "
            "tl.atomic_cas, which acquires; a volatile load does not"
        )
    verbs = {_verb(op), _verb(other)}
    if op.name in ATOMICS or other.name in ATOMICS:
        return (
            "make the plain access atomic as well, or order the two with atomics that release "
            'and acquire (sem="acq_rel"), whose old value is used'
        )
    if verbs == {"store"}:
        return (
            "let each program store to elements of its own, e.g. a row of partial results a "
            "program, added up afterwards; or use tl.atomic_add to add to shared ones"
        )
    return (
        "to add to shared elements use tl.atomic_add, or a lock that is held from the load to the "
        "end of the store; to hand results on, launch a second kernel; to change a tensor in "
        "place while others read it, store to a new one instead"
    )
