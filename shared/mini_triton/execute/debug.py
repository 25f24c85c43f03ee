"""`tl.device_print`, `tl.device_assert` and the hints that change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.errors import DeviceAssertion
from mini_triton.execute.registry import framed
from mini_triton.execute.values import Pointer
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame


#: Elements of a tile that are printed. A whole one may have 2²⁰, which nobody reads.
_MOST_PRINTED = 1_000


@framed("tt.print")
def _print(frame: Frame, op: Op) -> None:
    """Shows every program's tile, in grid order."""
    prefix = op.keywords[0] if op.keywords else ""
    for row, program in enumerate(frame.programs.tolist()):
        pid = frame.machine.program_id(program)
        shown = []
        for slot in op.operands:
            value = frame[slot]
            tile = value.absolute().lanes if isinstance(value, Pointer) else frame.tensor(slot)
            own = tile[row if tile.shape[0] > 1 else 0]
            shown.append(_words(own))
        frame.machine.show(f"pid {pid}{prefix}{' '.join(shown)}")


def _words(tile: torch.Tensor) -> str:
    """A tile as nested lists; of a large one the first elements, flat."""
    if tile.ndim == 0:
        return str(tile.item())
    if tile.numel() <= _MOST_PRINTED:
        return str(tile.tolist())
    first = ", ".join(map(str, tile.flatten()[:_MOST_PRINTED].tolist()))
    return f"[{first}, … {tile.numel():,} elements]"


@framed("tt.assert")
def _assert(frame: Frame, op: Op) -> None:
    condition = frame.tensor(op.operands[0])
    if condition.all():
        return
    position = (~condition).nonzero()[0].tolist()
    program = frame.machine.program_id(int(frame.programs[position[0]]))
    message = op.keywords[0] if op.keywords else ""
    lane = f", lane {position[1:]}" if len(position) > 1 else ""
    raise DeviceAssertion(
        f"{op.where}: kernel {frame.machine.kernel}, program {program}{lane}: device_assert "
        f"failed: {message}. No memory was changed."
    )


@framed("gpu.barrier", "ttg.barrier", "llvm.intr.assume")
def _nothing(frame: Frame, op: Op) -> None:
    """Programs run in lockstep, and an assumption only helps a code generator."""
