"""`tt.scan` with any combine region, along one axis of a tile: `tl.associative_scan`, `tl.cumsum`.

Sums, products and extremes of whole numbers and of float32 and float64 are given to torch, which
adds float32 up in float64. Any other region runs as a tree of 2·log₂ n steps, each on all lanes at
once; so do sums of 16-bit floats, since each step must round. A region must be associative: the
order in which hardware combines is another one again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from mini_triton.execute.operations.lanes import on_lanes
from mini_triton.execute.registry import framed
from mini_triton.execute.tiles.values import broadcast_shape
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor

_FAST: dict[str, Callable[[Tensor, int], Tensor]] = {
    "arith.addf": torch.cumsum,
    "arith.mulf": torch.cumprod,
    "arith.addi": lambda x, axis: torch.cumsum(x, axis, dtype=x.dtype),
    "arith.muli": lambda x, axis: torch.cumprod(x, axis, dtype=x.dtype),
    "arith.maxsi": lambda x, axis: torch.cummax(x, axis).values,
    "arith.minsi": lambda x, axis: torch.cummin(x, axis).values,
}


@framed("tt.scan")
def _scan(frame: Frame, op: Op) -> tuple[Tensor, ...]:
    axis = op.attrs["axis"] + 1
    tiles = frame.tiles(op)
    backwards = bool(op.attrs.get("reverse"))
    if backwards:
        tiles = [tile.flip(axis) for tile in tiles]
    fast = _recognised(op, tiles)
    scanned = (fast(tiles[0], axis),) if fast else tuple(_tree(frame, op, tiles, axis))
    return tuple(tile.flip(axis) for tile in scanned) if backwards else scanned


def _recognised(op: Op, tiles: list[Tensor]) -> Callable[[Tensor, int], Tensor] | None:
    """torch's scan for a region that is one operation on its two arguments."""
    block, dtype = op.regions[0].entry, tiles[0].dtype
    if len(tiles) != 1 or len(block.ops) != 2 or set(block.ops[0].operands) != set(block.args):
        return None
    if block.ops[1].operands != block.ops[0].results or dtype == torch.bool:
        return None
    if dtype.is_floating_point and dtype.itemsize < 4:
        return None
    return _FAST.get(block.ops[0].name)


def _tree(frame: Frame, op: Op, tiles: list[Tensor], axis: int) -> list[Tensor]:
    """Any combine region: neighbours are combined, the pairs scanned, and the rest filled in."""
    shape = broadcast_shape(*(t.shape for t in tiles))
    moved = [t.expand(shape).movedim(axis, 0) for t in tiles]
    columns = math.prod(shape) // shape[axis]
    region = on_lanes(frame, op, columns)

    def combine(a: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
        rows = a[0].shape[0]
        if rows == 0:
            return list(a)
        results = region([t.reshape(-1) for t in (*a, *b)])
        return [t.reshape(rows, columns) for t in results]

    scanned = _scanned([t.reshape(shape[axis], columns) for t in moved], combine)
    back = moved[0].shape
    return [t.reshape(back).movedim(0, axis) for t in scanned]


def _scanned(
    x: list[Tensor], combine: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]]
) -> list[Tensor]:
    """The inclusive scan of the rows of (n, columns) tensors."""
    rows = x[0].shape[0]
    if rows == 1:
        return x
    half = rows // 2
    pairs = combine([t[0 : 2 * half : 2] for t in x], [t[1::2] for t in x])
    odd = _scanned(pairs, combine)
    even = combine([t[: rows - half - 1] for t in odd], [t[2::2] for t in x])
    results = []
    for own, at_odd, at_even in zip(x, odd, even, strict=True):
        result = torch.empty_like(own)
        result[0], result[1::2], result[2::2] = own[0], at_odd, at_even
        results.append(result)
    return results
