"""Whether every lane of an access lies in its tensor, and the words for the first that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.errors import OutOfBounds
from mini_triton.execute.tiles.values import Buffer
from mini_triton.finding import Place
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


def check_bounds(
    frame: Frame,
    op: Op,
    buffer: Buffer,
    offsets: Tensor,
    mask: Tensor | None,
    numel: int,
    verb: str,
) -> None:
    """Raises `OutOfBounds` for the first program, in grid order, with a lane outside."""
    bad = (offsets < 0) | (offsets >= numel)
    if mask is not None:
        bad = bad & mask
    if not bad.any():
        return
    bad = bad.expand(frame.count, *op.operand_types[0].shape)  # lanes that are the same are one
    row, *lane = bad.nonzero()[0].tolist()
    full = torch.broadcast_to(offsets, bad.shape)[row]
    on = None if mask is None else mask.expand(bad.shape)[row]
    raise _outside(frame, op, buffer, full, bad[row], on, lane, row, numel, verb)


def _outside(
    frame: Frame,
    op: Op,
    buffer: Buffer,
    offsets: Tensor,
    bad: Tensor,
    on: Tensor | None,
    lane: list[int],
    row: int,
    numel: int,
    verb: str,
) -> OutOfBounds:
    """The error for the program at `row`: its lanes reach `offsets`, those in `bad` outside."""
    program = frame.machine.program_id(int(frame.programs[row]))
    offset = int(offsets[tuple(lane)])
    inside = bool((~bad if on is None else on & ~bad).any())
    mask, hint = _mask(frame, op, inside)
    return OutOfBounds.at(
        op.where,
        frame.machine.kernel,
        f"program {program} {verb} element {offset} of {buffer.name}, {_beside(offset, numel)}",
        _lanes(offsets, bad, lane, numel),
        verb=WORDS[verb],
        also=() if mask is None else (Place.of(mask.where, "", "the mask, true for this lane"),),
        facts=((buffer.name, _reach(buffer, offset, numel)),),
        tensor=buffer.name,
        index=(offset,),
        programs=(program,),
        hint=hint,
    )


def _beside(offset: int, numel: int) -> str:
    if numel == 0:
        return "which is empty"
    return "before its first, element 0" if offset < 0 else f"after its last, element {numel - 1}"


def _lanes(offsets: Tensor, bad: Tensor, lane: list[int], numel: int) -> str:
    """Which lane of the tile it is, how many there are, and how far out they reach."""
    if not lane:
        return ""
    outside = offsets[bad]
    low, high = int(outside.min()), int(outside.max())
    reach = [f"down to element {low}"] * (low < 0) + [f"up to element {high}"] * (high >= numel)
    return (
        f"lane {lane} of the tile; {len(outside):,} of its {offsets.numel():,} lanes are outside, "
        f"{' and '.join(reach)}"
    )


def _reach(buffer: Buffer, offset: int, numel: int) -> str:
    """The tensor's layout, and where in it the element would be if an axis went on."""
    text = f"shape {buffer.shape}, strides {buffer.stride}"
    if numel:
        text += f": its pointer reaches elements 0 to {numel - 1}"
    if numel != buffer.flat.numel():
        text += f" of {buffer.nbytes // numel} bytes each, as this pointer reads it"
    elif len(buffer.shape) > 1 and offset >= 0 and _contiguous(buffer):
        index = [offset // buffer.stride[0]]
        for size, stride in zip(buffer.shape[1:], buffer.stride[1:], strict=True):
            index.append(offset // stride % size)
        text += f"; element {offset} would be {buffer.name}{index}"
    return text


def _contiguous(buffer: Buffer) -> bool:
    expected = 1
    for size, stride in zip(reversed(buffer.shape), reversed(buffer.stride), strict=True):
        if stride != expected:
            return False
        expected *= size
    return True


#: The word by which source calls what an access does.
WORDS = {"loads": "load", "stores": "store", "updates": "atomic"}
#: Which operand of an access is its mask, if it has so many.
_MASK = {
    "tt.load": 1,
    "tt.store": 2,
    "tt.atomic_load": 1,
    "tt.atomic_store": 2,
    "tt.atomic_rmw": 2,
}
#: Operations that give a mask another shape.
_RESHAPING = {"tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.splat", "tt.trans"}


def _mask(frame: Frame, op: Op, inside: bool) -> tuple[Op | None, str]:
    """(The operation that makes the access's mask, if on another line; what to do.)

    inside: whether some of the program's lanes are. If not, a mask is not what went wrong.
    """
    position = _MASK.get(op.name, len(op.operands))
    slot = op.operands[position] if position < len(op.operands) else None
    made = _origin(frame, slot) if slot is not None else None
    if slot is None or (made is not None and made.name == "arith.constant"):
        if inside:
            return None, "the access has no mask: give it one that is true only inside the tensor"
        return None, f"nothing of it is inside: {_of_index(frame)}"
    line = f" of line {made.where.line}" if made and made.where.line != op.where.line else ""
    hint = f"the mask{line} lets this lane through: compare it with the tensor's sizes and strides"
    if not inside:
        hint = f"nothing that the mask lets through is inside: {_of_index(frame)}"
    return (made if line else None), hint


def _of_index(frame: Frame) -> str:
    grid = frame.machine.grid
    return f"look at how the index is made of program ids and strides, and at the grid, {grid}"


def _origin(frame: Frame, slot: int) -> Op | None:
    """The operation that makes a mask, before it takes the tile's shape."""
    makers = {result: op for op in frame.machine.program.walk() for result in op.results}
    made = makers.get(slot)
    while made is not None and made.name in _RESHAPING:
        made = makers.get(made.operands[0])
    return made
