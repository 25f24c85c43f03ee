"""Structured control flow, branches, calls and program ids.

Programs of a chunk run in lockstep while they agree. Where they part (a condition or a trip count
that differs) each group goes on in a child frame, and the results are merged by program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from mini_triton.errors import BadProgram
from mini_triton.execute.induction import induction
from mini_triton.execute.registry import framed
from mini_triton.execute.tiles.affine import INDEX_DTYPES, Affine, constant
from mini_triton.execute.tiles.mask import Mask
from mini_triton.execute.tiles.shared_tiles import Shared
from mini_triton.execute.tiles.values import Value, merge, narrow
from mini_triton.execute.trips import Schedule, Stage, bound, count_trips, scheduled
from mini_triton.ir.program import Block, Op, Region

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor
_AXIS = {"x": 0, "y": 1, "z": 2}

#: What ends a function, and a region that is one (`lanes`).
RETURNS = {"tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}


@framed("tt.get_program_id")
def _program_id(frame: Frame, op: Op) -> Affine:
    return frame.machine.program_axis(frame.programs, _AXIS[op.keywords[0]])


@framed("tt.get_num_programs")
def _num_programs(frame: Frame, op: Op) -> Affine:
    return constant(frame.machine.grid[_AXIS[op.keywords[0]]], torch.int32)


def _parted(condition: Value) -> tuple[Tensor, Tensor] | bool:
    """True or False where all programs agree, else (positions of true, positions of false)."""
    if isinstance(condition, Mask):
        if condition.decided is not None:
            return condition.decided
        condition = condition.dense
    assert isinstance(condition, torch.Tensor)
    true = int(condition.sum())
    if true == condition.numel():
        return True
    if true == 0:
        return False
    return _places(condition)


def _places(condition: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of true, and of false."""
    lanes = condition.numpy()
    return torch.from_numpy(np.flatnonzero(lanes)), torch.from_numpy(np.flatnonzero(~lanes))


@framed("scf.if")
def _if(frame: Frame, op: Op) -> tuple[Value, ...]:
    parted = _parted(frame[op.operands[0]])

    def run(region_frame: Frame, taken: bool) -> list[Value]:
        if not taken and len(op.regions) == 1:
            return []
        block = op.regions[0 if taken else 1].entry
        return region_frame.machine.run_block(region_frame, block)[1]

    if isinstance(parted, bool):
        return tuple(run(frame, parted))
    pieces = [
        (index, run(frame.child(index), taken))
        for index, taken in zip(parted, (True, False), strict=True)
    ]
    return tuple(merge(pieces, frame.count)) if op.results else ()


@framed("scf.for")
def _for(frame: Frame, op: Op) -> tuple[Value, ...]:
    lower, upper, step = (bound(frame, op, slot) for slot in op.operands[:3])
    carried = [frame[slot] for slot in op.operands[3:]]
    block = op.regions[0].entry
    counts = count_trips(frame, op, lower, upper, step)
    if isinstance(counts, torch.Tensor) and not bool(counts.all()):  # some make no trip
        running, idle = _places(counts > 0)
        lower, step, counts = lower.narrow(running), step.narrow(running), counts[running]
        if bool((counts == counts[0]).all()):
            counts = int(counts[0])
        some = scheduled(lower, step, counts)
        left = _loop(frame.child(running), block, _cut(carried, running), some)
        pieces = [(running, left), (idle, _cut(carried, idle))]
        return tuple(merge(pieces, frame.count)) if op.results else ()
    return tuple(_loop(frame, block, carried, scheduled(lower, step, counts)))


def _loop(frame: Frame, block: Block, carried: list[Value], schedule: Schedule) -> list[Value]:
    """Runs a loop of which every program makes a trip, or none; the carried values after it."""
    even = None if frame.machine.tells_operations else induction(frame, block, carried, schedule)
    if even is None:
        trips = _Trips(block, schedule)
        return _in_stages(frame, schedule, carried, trips.run)
    if even.nothing_left:
        return even.joined([])
    return even.joined(_in_stages(frame, schedule, even.passed, even.run))


#: Runs trips of a loop in a frame of the programs at some positions; carried values → carried ones.
_Run = Callable[["Frame", Tensor | None, range, list[Value]], list[Value]]


def _in_stages(frame: Frame, schedule: Schedule, carried: list[Value], run: _Run) -> list[Value]:
    """Calls `run` for each stage of a loop, and brings carried values from one to the next."""
    if isinstance(schedule.counts, int):
        return _settled(run(frame, None, range(schedule.counts), carried))
    counts, pieces = schedule.counts, []
    before: Stage | None = None
    values: list[Value] = []
    for stage in schedule.stages():
        now, everybody = stage.running, len(stage.running) == frame.count
        if before is None:
            values = carried if everybody else _cut(carried, now)
        elif len(now) < len(before.running):
            going_on, ended = _places(counts[before.running] >= stage.least)
            pieces.append((before.running[ended], _cut(values, ended)))
            values = _cut(values, going_on)
        else:
            running, begun = _places(counts[now] >= before.least)
            values = merge([(running, values), (begun, _cut(carried, now[begun]))], len(now))
        part, index = (frame, None) if everybody else (frame.child(now), now)
        values, before = _settled(run(part, index, stage.trips, values)), stage
    assert before is not None
    return merge([*pieces, (before.running, values)], frame.count)


class _Trips:
    """A loop run trip by trip, all of its operations."""

    def __init__(self, block: Block, schedule: Schedule) -> None:
        self._block = block
        self._schedule = schedule

    def run(
        self, frame: Frame, index: Tensor | None, trips: range, carried: list[Value]
    ) -> list[Value]:
        """Runs trips in a frame of the programs at the positions `index`; None: all of them."""
        first, step, block = self._schedule.first, self._schedule.step, self._block
        if index is not None:
            first, step = first.narrow(index), step.narrow(index)
        carried = list(carried)
        for k in trips:
            counter = first.plus(step.times(k))
            formula = counter.fits() if counter.dtype in INDEX_DTYPES else None
            frame[block.args[0]] = formula or counter.dense
            for slot in reversed(block.args[1:]):  # nobody else may hold them (`reuse`)
                frame[slot] = carried.pop()
            _, carried = frame.machine.run_block(frame, block)
        return carried


def _settled(carried: list[Value]) -> list[Value]:
    """What leaves a loop: no tiles that a product adds to in place."""
    return [v.dense if isinstance(v, Shared) and v.owned else v for v in carried]


def _cut(values: list[Value], index: Tensor) -> list[Value]:
    return [narrow(value, index) for value in values]


@framed("scf.while")
def _while(frame: Frame, op: Op) -> tuple[Value, ...]:
    before, after = (region.entry for region in op.regions)
    carried = [frame[slot] for slot in op.operands]
    pieces: list[tuple[Tensor, list[Value]]] = []
    position, part = torch.arange(frame.count), frame
    while True:
        for slot, value in zip(before.args, carried, strict=True):
            part[slot] = value
        _, (condition, *passed) = part.machine.run_block(part, before)
        parted = _parted(condition)
        if parted is False:
            pieces.append((position, passed))
            break
        if not isinstance(parted, bool):
            going_on, ended = parted
            pieces.append((position[ended], _cut(passed, ended)))
            part, position = part.child(going_on), position[going_on]
            passed = _cut(passed, going_on)
        for slot, value in zip(after.args, passed, strict=True):
            part[slot] = value
        _, carried = part.machine.run_block(part, after)
    return tuple(merge(pieces, frame.count)) if op.results else ()


def run_function(frame: Frame, body: Region) -> list[Value]:
    """Runs a function's blocks to its returns; the returned values, merged by program."""
    blocks = {block.label: block for block in body.blocks}
    returned: list[tuple[Tensor, list[Value]]] = []
    pending = [(frame, torch.arange(frame.count), body.entry)]
    while pending:
        part, position, block = pending.pop()
        op, values = part.machine.run_block(part, block)
        if op.name in RETURNS:
            returned.append((position, values))
        elif op.name == "cf.br":
            pending.append((part, position, _enter(part, op, 0, blocks)))
        elif op.name == "cf.cond_br":
            parted = _parted(values[0])
            if isinstance(parted, bool):
                pending.append((part, position, _enter(part, op, 0 if parted else 1, blocks)))
                continue
            for successor, index in enumerate(parted):
                child = part.child(index)
                pending.append((child, position[index], _enter(child, op, successor, blocks)))
        else:
            raise BadProgram(f"{op.where}: a function's block ends with {op.name}")
    return merge(returned, frame.count) if returned[0][1] else []


def _enter(frame: Frame, op: Op, successor: int, blocks: dict[str, Block]) -> Block:
    label, arguments = op.successors[successor]
    block = blocks[label]
    values = [frame[slot] for slot in arguments]
    for slot, value in zip(block.args, values, strict=True):
        frame[slot] = value
    return block


@framed("tt.call")
def _call(frame: Frame, op: Op) -> tuple[Value, ...]:
    """Calls a `noinline` function; its slots are its own, so one frame level suffices."""
    function = frame.machine.program.functions[op.attrs["callee"]]
    inner = frame.child(torch.arange(frame.count))
    for slot, value in zip(function.args, frame.operands(op), strict=True):
        inner[slot] = value
    return tuple(run_function(inner, function.body))
