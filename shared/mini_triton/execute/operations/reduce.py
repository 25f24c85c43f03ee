"""`tt.reduce` with any combine region, along one axis of a tile.

Common combine regions are recognised and given to torch; any other runs as a tree: the axis is
halved until one element is left, which is how hardware does it, and costs log₂ n steps. 16-bit sums
are always run as the tree, since each step must round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from mini_triton.execute.registry import framed
from mini_triton.execute.tiles.values import broadcast_shape, dense
from mini_triton.ir.program import Block, Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


#: torch's order of additions depends on threads beyond 32,768 elements of one sum: stay far below.
_LONGEST_SUM = 8192


def _float_sum(x: Tensor, axis: int) -> Tensor:
    """A sum whose bits depend on the row alone, not on threads or on other programs of the chunk.

    torch orders additions by memory layout, so the layout is always the same one here.
    """
    x = x.contiguous()
    size = x.shape[axis]
    if size > _LONGEST_SUM:
        x = x.unflatten(axis, (size // _LONGEST_SUM, _LONGEST_SUM)).sum(axis + 1)
    return x.sum(axis)


_FAST: dict[str, Callable[[Tensor, int], Tensor]] = {
    "arith.addf": _float_sum,
    "arith.addi": lambda x, axis: x.sum(axis, dtype=x.dtype),
    "arith.maxsi": lambda x, axis: x.amax(axis),
    "arith.minsi": lambda x, axis: x.amin(axis),
    "arith.maximumf": lambda x, axis: x.amax(axis),
    "arith.minimumf": lambda x, axis: x.amin(axis),
}
#: These ignore NaN, torch's amax does not: replace NaN by the identity, unless all are NaN.
_IGNORE_NAN = {
    "arith.maxnumf": (torch.Tensor.amax, -torch.inf),
    "arith.minnumf": (torch.Tensor.amin, torch.inf),
}


@framed("tt.reduce")
def _reduce(frame: Frame, op: Op) -> tuple[Tensor, ...]:
    axis = op.attrs["axis"] + 1
    tiles = frame.tiles(op)
    block = op.regions[0].entry
    fast = _recognised(block, tiles)
    if fast is not None:
        return (fast(tiles[0], axis),)
    return tuple(_tree(frame, block, tiles, axis))


def _recognised(block: Block, tiles: list[Tensor]) -> Callable[[Tensor, int], Tensor] | None:
    """torch's reduction for a region that is one operation on its two arguments."""
    if len(tiles) != 1 or len(block.ops) != 2 or set(block.ops[0].operands) != set(block.args):
        return None
    name, dtype = block.ops[0].name, tiles[0].dtype
    if dtype == torch.bool:
        return None
    if name in _IGNORE_NAN and dtype.itemsize >= 4:
        reduced, identity = _IGNORE_NAN[name]

        def ignoring_nan(x: Tensor, axis: int) -> Tensor:
            result = reduced(x, axis)
            nan = torch.isnan(result)
            if not nan.any():
                return result
            others = reduced(torch.where(torch.isnan(x), identity, x), axis)
            return torch.where(torch.isnan(x).all(axis), result, others)

        return ignoring_nan
    if name == "arith.addf" and dtype.itemsize < 4:
        return None
    return _FAST.get(name)


def _tree(frame: Frame, block: Block, tiles: list[Tensor], axis: int) -> list[Tensor]:
    """Combines the first half of the axis with the second until one element is left.

    To the region its arguments are scalars, as those of a kernel are: so lanes stand where programs
    stand, and part like programs if the region branches or loops.
    """
    shape = broadcast_shape(*(t.shape for t in tiles))
    left = (*shape[:axis], *shape[axis + 1 :])
    columns, size = math.prod(left), shape[axis]  # a power of two: TTIR tiles are
    lanes = [t.expand(shape).movedim(axis, 0).reshape(-1) for t in tiles]
    parts = any(op.regions or op.name == "tt.call" for op in block.ops)
    programs = torch.arange(shape[0]).repeat_interleave(columns // shape[0])
    while size > 1:
        size //= 2
        half = size * columns
        inner = frame.child(programs.repeat(size)) if parts else frame
        halves = [t.narrow(0, start, half) for start in (0, half) for t in lanes]
        for slot, value in zip(block.args, halves, strict=True):
            inner[slot] = value
        _, combined = frame.machine.run_block(inner, block)
        lanes = [v.expand(half) for v in map(dense, combined) if isinstance(v, torch.Tensor)]
    return [t.reshape(left) for t in lanes]
