"""`tt.map_elementwise`: a scalar function, which may branch, on every lane of some tiles.

With `pack` n the function takes n neighbouring lanes of each tile at once: all n of the first tile,
then all n of the second, and returns them in that order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from mini_triton.errors import BadProgram
from mini_triton.execute.operations.lanes import on_lanes
from mini_triton.execute.registry import framed
from mini_triton.execute.tiles.values import broadcast_shape
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


@framed("tt.map_elementwise")
def _map(frame: Frame, op: Op) -> tuple[Tensor, ...]:
    pack = op.attrs.get("pack", 1)
    tiles = frame.tiles(op)
    shape = broadcast_shape(*(t.shape for t in tiles))
    lanes = math.prod(shape)
    if pack < 1 or lanes % pack:
        raise BadProgram(f"{op.name} cannot take {pack} of {lanes} lanes at once")
    packs = [t.expand(shape).reshape(-1, pack) for t in tiles]
    results = on_lanes(frame, op, lanes // pack)([t[:, k] for t in packs for k in range(pack)])
    if len(results) != pack * len(op.types):
        raise BadProgram(f"the function of {op.name} returns {len(results)} values")
    return tuple(
        torch.stack(results[first : first + pack], dim=1).reshape(shape)
        for first in range(0, len(results), pack)
    )
