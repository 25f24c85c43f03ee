"""Pointers of unknown origin, such as those that a kernel loads: byte addresses in some tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.errors import OutOfBounds
from mini_triton.execute.memory.bounds import WORDS
from mini_triton.execute.tiles.values import Buffer, Pointer, pointer_at
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


def by_buffer(
    frame: Frame, op: Op, pointer: Pointer, mask: Tensor | None
) -> list[tuple[Buffer, Pointer, Tensor]]:
    """Sorts byte addresses into the launch's tensors: (buffer, pointer into it, mask)."""
    address = pointer.lanes
    left = (
        torch.ones_like(address, dtype=torch.bool) if mask is None else mask & (address == address)
    )
    parts = []
    for buffer in frame.machine.buffers:
        inside = left & (address >= buffer.origin) & (address < buffer.origin + buffer.nbytes)
        if inside.any():
            offsets = (address - buffer.origin) // pointer.dtype.itemsize
            parts.append((buffer, pointer_at(buffer, offsets, pointer.dtype), inside))
            left = left & ~inside
    if left.any():
        left = left.expand(frame.count, *left.shape[1:])
        position = left.nonzero()[0]
        program = frame.machine.program_id(int(frame.programs[position[0]]))
        verb = next((verb for verb, word in WORDS.items() if word in op.name), "updates")
        raise OutOfBounds.at(
            op.where,
            frame.machine.kernel,
            f"program {program} {verb} what lies in no tensor of this launch, and in none whose "
            "data_ptr() is in one",
            "the address was computed, or loaded",
            verb=WORDS[verb],
            programs=(program,),
            hint="pass the tensor that it belongs to",
        )
    return parts
