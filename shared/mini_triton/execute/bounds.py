"""Whether every lane of an access lies in its tensor, and the words for the first that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.errors import OutOfBounds
from mini_triton.execute.values import Buffer
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
    bad = bad.expand(frame.count, *bad.shape[1:])
    position = bad.nonzero()[0]
    full = torch.broadcast_to(offsets, bad.shape)
    raise OutOfBounds(
        _describe(frame, op, buffer, int(full[tuple(position)]), position.tolist(), numel, verb)
    )


def _describe(
    frame: Frame, op: Op, buffer: Buffer, offset: int, position: list[int], numel: int, verb: str
) -> str:
    program = frame.machine.program_id(int(frame.programs[position[0]]))
    lane = f", lane {position[1:]} of the tile" if len(position) > 1 else ""
    where = (
        f"which is empty: shape {buffer.shape}"
        if numel == 0
        else f"{'before its first' if offset < 0 else 'after its last'} element: shape "
        f"{buffer.shape}, strides {buffer.stride}, so that its pointer reaches elements 0 to "
        f"{numel - 1}"
    )
    return (
        f"{op.where}: kernel {frame.machine.kernel}, program {program}{lane}, {verb} element "
        f"{offset} of {buffer.name}, {where}. No memory was changed; {_hint(frame, op)}."
    )


#: Which operand of an access is its mask, if it has so many.
_MASK = {
    "tt.load": 1,
    "tt.store": 2,
    "tt.atomic_load": 1,
    "tt.atomic_store": 2,
    "tt.atomic_rmw": 2,
}


def _hint(frame: Frame, op: Op) -> str:
    """What to look at: the mask, and the line that makes it, if there is one."""
    position = _MASK.get(op.name, len(op.operands))
    slot = op.operands[position] if position < len(op.operands) else None
    ops = frame.machine.program.walk() if slot is not None else []
    made = next((found for found in ops if slot in found.results), None)
    if slot is None or (made is not None and made.name == "arith.constant"):
        return "the access has no mask: give it one that is true only inside the tensor"
    line = f" of line {made.where.line}" if made and made.where.line != op.where.line else ""
    return f"the mask{line} lets this lane through: compare it with the tensor's sizes and strides"
