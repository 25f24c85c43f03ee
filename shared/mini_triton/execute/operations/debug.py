"""`tl.device_print`, `tl.device_assert` and the hints that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mini_triton.errors import DeviceAssertion
from mini_triton.execute.registry import framed
from mini_triton.execute.tiles.values import Pointer
from mini_triton.ir.program import Op
from mini_triton.ir.types import INTEGER_OF_SIZE

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame


#: Elements of a tile that are printed. A whole one may have 2²⁰, which nobody reads.
_MOST_PRINTED = 1_000


@framed("tt.print")
def _print(frame: Frame, op: Op) -> None:
    """Shows every program's tile, in grid order."""
    prefix = op.keywords[0] if op.keywords else ""
    tiles = [_printed(frame, op, position) for position in range(len(op.operands))]
    for row, program in enumerate(frame.programs.tolist()):
        pid = frame.machine.program_id(program)
        shown = [_words(tile[row if tile.shape[0] > 1 else 0], word) for tile, word in tiles]
        frame.machine.show(f"pid {pid}{prefix}{' '.join(shown)}")


def _printed(frame: Frame, op: Op, position: int) -> tuple[torch.Tensor, Callable[[Any], str]]:
    """An operand's lanes, and how an element of it is written."""
    slot = op.operands[position]
    value = frame[slot]
    whole = (-1, *op.operand_types[position].shape)  # lanes that are the same are kept as one
    if isinstance(value, Pointer):
        return value.absolute().lanes.expand(whole), "0x{:x}".format
    tile = frame.tensor(slot)
    bits = 8 * tile.dtype.itemsize
    if op.attrs.get("hex") in (True, "true") and tile.dtype != torch.bool:
        tile = tile.contiguous().view(INTEGER_OF_SIZE[tile.dtype.itemsize]).expand(whole)
        return tile, lambda element: f"0x{element & ((1 << bits) - 1):0{bits // 4}x}"
    tile = tile.expand(whole)
    if tile.dtype.is_floating_point and bits <= 32:  # the fewest digits that tell it from others
        return tile, lambda element: str(np.float32(element))
    if tile.dtype.is_floating_point or tile.dtype == torch.bool:
        return tile, str
    signed = op.attrs.get("isSigned") or []
    if position < len(signed) and not int(signed[position]):
        return tile, lambda element: str(element & ((1 << bits) - 1))
    return tile, str


def _words(tile: torch.Tensor, word: Callable[[Any], str]) -> str:
    """A tile as nested lists; of a large one the first elements, flat."""

    def nested(part: Any) -> str:
        return f"[{', '.join(map(nested, part))}]" if isinstance(part, list) else word(part)

    if tile.numel() <= _MOST_PRINTED:
        return nested(tile.tolist())
    first = ", ".join(map(word, tile.flatten()[:_MOST_PRINTED].tolist()))
    return f"[{first}, … {tile.numel():,} elements]"


@framed("tt.assert")
def _assert(frame: Frame, op: Op) -> None:
    condition = frame.tensor(op.operands[0])
    if condition.all():
        return
    position = (~condition).nonzero()[0].tolist()
    program = frame.machine.program_id(int(frame.programs[position[0]]))
    message = op.keywords[0] if op.keywords else ""
    lane = f", lane {position[1:]} of the tile" if len(position) > 1 else ""
    raise DeviceAssertion.at(
        op.where,
        frame.machine.kernel,
        message or "a condition does not hold",
        f"is false in program {program}{lane}",
        verb="device_assert",
        programs=(program,),
    )


@framed(
    *("gpu.barrier", "ttg.barrier", "llvm.intr.assume"),
    *("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents"),  # of Triton 3.9
)
def _nothing(frame: Frame, op: Op) -> None:
    """An assumption only helps a code generator, and a barrier orders the warps of one program,
    whose operations run one after the other, each on its whole tile. So do launches."""
