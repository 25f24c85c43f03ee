"""Structured control flow, branches, calls and program ids.

Programs of a chunk run in lockstep while they agree. Where they part (a condition or a trip count
that differs) each group goes on in a child frame, and the results are merged by program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.errors import BadProgram, KernelError
from mini_triton.execute.affine import INDEX_DTYPES, Affine, constant, per_program
from mini_triton.execute.induction import induction
from mini_triton.execute.mask import Mask
from mini_triton.execute.registry import framed
from mini_triton.execute.shared_tiles import Shared
from mini_triton.execute.values import Value, merge, narrow
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
    return condition.nonzero()[:, 0], (~condition).nonzero()[:, 0]


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
    lower, upper, step = (_bound(frame, op, slot) for slot in op.operands[:3])
    carried = [frame[slot] for slot in op.operands[3:]]
    block = op.regions[0].entry
    trips = _trips(frame, op, lower, upper, step)
    if isinstance(trips, int):
        return tuple(_iterate(frame, block, carried, lower, step, range(trips)))
    pieces: list[tuple[Tensor, list[Value]]] = []
    position, done, part = torch.arange(frame.count), 0, frame
    for length in torch.unique(trips).tolist():
        carried = _iterate(part, block, carried, lower, step, range(done, length))
        ended = trips[position] == length
        ended_at, going_on = ended.nonzero()[:, 0], (~ended).nonzero()[:, 0]
        pieces.append((position[ended_at], _cut(carried, ended_at)))
        if len(going_on):
            part, position, done = part.child(going_on), position[going_on], length
            carried = _cut(carried, going_on)
            lower, step = lower.narrow(going_on), step.narrow(going_on)
    return tuple(merge(pieces, frame.count)) if op.results else ()


def _bound(frame: Frame, op: Op, slot: int) -> Affine:
    value = frame[slot]
    unsigned = bool(op.attrs.get("unsigned"))
    if isinstance(value, Affine) and not (unsigned and value.lowest < 0):
        return value
    lanes = frame.tensor(slot)
    wide = lanes.to(torch.int64)
    if unsigned:
        wide = wide & ((1 << 8 * lanes.element_size()) - 1 if lanes.element_size() < 8 else -1)
        if bool((wide < 0).any()):
            raise KernelError(
                f"{op.where}: kernel {frame.machine.kernel}: a bound of this loop over unsigned "
                "numbers is 2^63 or more. No memory was changed."
            )
    bound = per_program(wide)
    assert bound is not None
    return bound.with_dtype(lanes.dtype)


def _trips(frame: Frame, op: Op, lower: Affine, upper: Affine, step: Affine) -> int | Tensor:
    """How often each program runs the body: one number, or (P,) where programs differ.

    The body runs while the counter is below the upper bound, so a step that is not positive makes
    no trip or endless ones; the latter raise `KernelError`.
    """
    first, last, stride = lower.base, upper.base, step.base
    if step.lowest <= 0:
        stride = torch.as_tensor(stride)
        endless = (stride <= 0) & torch.as_tensor(first < last)
        if endless.any():
            at = int(endless.expand(frame.count).nonzero()[0])
            found = int(stride.expand(frame.count)[at])
            program = frame.machine.program_id(int(frame.programs[at]))
            raise KernelError(
                f"{op.where}: kernel {frame.machine.kernel}, program {program}: the loop's step is "
                f"{found}, so that it would never end. No memory was changed; make the step "
                "positive."
            )
        stride = stride.clamp(min=1)
    if isinstance(first, int) and isinstance(last, int) and isinstance(stride, int):
        return max(0, -(-(last - first) // stride))
    difference = last - first
    if isinstance(difference, int):
        difference = min(difference, torch.iinfo(torch.int64).max)
    span = torch.as_tensor(difference)
    trips = -torch.div(-span, stride, rounding_mode="floor")
    trips = trips.clamp(min=0)
    fewest, most = torch.stack(torch.aminmax(trips)).tolist()
    return most if fewest == most else trips


def _iterate(
    frame: Frame, block: Block, carried: list[Value], lower: Affine, step: Affine, trips: range
) -> list[Value]:
    """Runs the body for the given iteration numbers; returns the carried values after them."""
    if not frame.machine.tells_operations:
        even = induction(frame, block, carried, lower, step, trips)
        if even is not None:
            return _settled(even.run())
    for k in trips:
        counter = lower.plus(step.times(k))
        formula = counter.fits() if counter.dtype in INDEX_DTYPES else None
        frame[block.args[0]] = formula or counter.dense
        for slot, value in zip(block.args[1:], carried, strict=True):
            frame[slot] = value
        _, carried = frame.machine.run_block(frame, block)
    return _settled(carried)


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
