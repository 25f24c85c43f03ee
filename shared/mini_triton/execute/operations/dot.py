"""`tt.dot`: products of two tiles, with the precision that the kernel asks for.

float16 and bfloat16 products are exact in float32, where they are accumulated, as tensor cores do.
float32 operands are rounded to TF32 (10 bits of mantissa, ties away from zero: `cvt.rna.tf32`) when
the kernel says `tf32`, Triton's default, and kept whole for `ieee`, `tf32x3` and `bf16x*`, which
emulate float32. Integer products are exact and wrap at 32 bits, as Hopper's
`wgmma` has it (`mma`, which small tiles get there, saturates every 32 products).

The bits of a program's product do not depend on which programs run with it. Measured on MKL with
AVX2 and AVX-512: they are the same for a matrix alone, in a batch, and with others below it (more
rows); for operands in rows or in columns, they differ with the layout of the right one in float64,
and in float32 from K = 256 on. There operands are copied into rows.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import torch

from mini_triton import settings
from mini_triton.execute.registry import lazy
from mini_triton.execute.tiles.shared_tiles import Shared, crossed, sharing
from mini_triton.execute.tiles.values import Value, dense
from mini_triton.ir.program import Op, Program
from mini_triton.ir.types import Type

Tensor = torch.Tensor
Operand = Tensor | Shared

#: From this depth on, and in float64, the layout of an operand can change a product's bits.
_LAYOUT_MATTERS = 256


def to_tf32(x: Tensor) -> Tensor:
    """float32 → float32 with 10 bits of mantissa, ties away from zero."""
    bits = x.contiguous().view(torch.int32)
    rounded = (bits + 0x1000).bitwise_and_(~0x1FFF).view(torch.float32)
    if math.isnan(float(x.sum())):  # looking at a sum is five times quicker than at each number
        return torch.where(torch.isnan(x), x, rounded)
    return rounded


@lazy("tt.dot")
def _dot(op: Op, a: Value, b: Value, c: Value) -> Value:
    """(…, M, K) × (…, K, N) + (…, M, N); each operand may be the same for all programs."""
    x, y = (_operand(op, v, kind) for v, kind in zip((a, b), op.operand_types[:2], strict=True))
    dtype = op.types[0].dtype
    if not op.operand_types[0].is_float:
        product = torch.matmul(_lanes(x), _lanes(y))  # exact in float64 below 2^53
        return _lanes(c) + product.to(torch.int64).to(dtype)
    if op.accumulates:
        return _accumulated(op, x, y, c)
    start = _lanes(c)
    start = start if start.dtype == torch.float64 else start.float()
    programs = max(start.shape[0], _programs(x), _programs(y))
    return _sum(op, start, *_factors(op, x, y, programs)).view(-1, *op.types[0].shape).to(dtype)


def _lanes(value: Value) -> Tensor:
    lanes = dense(value)
    assert isinstance(lanes, torch.Tensor)
    return lanes


def _operand(op: Op, value: Value, kind: Type) -> Operand:
    """A full tile in the dtype of the product; what programs share stays shared."""
    given = tiles = value.tiles if isinstance(value, Shared) else _lanes(value)
    if tiles.shape[1:] != kind.shape:
        tiles = tiles.expand(tiles.shape[0], *kind.shape)
    if not kind.is_float:
        tiles = tiles.double()
    elif tiles.dtype != torch.float64:
        asked = op.attrs.get("inputPrecision", "ieee") == "tf32" and settings.current().tf32
        tiles = to_tf32(tiles) if asked and tiles.dtype == torch.float32 else tiles.float()
    if tiles.dtype == torch.float64 or op.operand_types[0].shape[-1] >= _LAYOUT_MATTERS:
        tiles = tiles.contiguous()
    if isinstance(value, Shared):
        return value if tiles is given else value.of(tiles)
    return tiles


def _programs(value: Value) -> int:
    return value.programs if isinstance(value, Shared) else _lanes(value).shape[0]


def _factors(op: Op, x: Operand, y: Operand, programs: int) -> tuple[Tensor, Tensor]:
    """Matrices (G, rows, K) and (G, K, N) whose products are those of all programs in turn.

    One a program; or fewer with more rows, where neighbours have the same right tile.
    """
    *_, m, k = op.operand_types[0].shape
    n = op.types[0].shape[-1]
    if isinstance(x, torch.Tensor) and x.ndim == 3 and x.shape[0] == programs:
        if isinstance(y, Shared) and y.sharing.repeat:
            return x.reshape(y.sharing.count, -1, k), y.tiles
        if _programs(y) == 1:
            return x.reshape(1, -1, k), _lanes(y)
    left, right = (_lanes(v) for v in (x, y))
    return (
        left.expand(programs, *left.shape[1:]).reshape(-1, m, k),
        right.expand(programs, *right.shape[1:]).reshape(-1, k, n),
    )


def _sum(op: Op, start: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """start + left·right, (G, rows, N); start broadcasts to the programs' tiles."""
    groups, rows, n = left.shape[0], left.shape[1], right.shape[-1]
    if start.numel() == 1:
        return torch.baddbmm(start.reshape(1, 1, 1), left, right)
    *batch, m, _ = op.types[0].shape
    programs = groups * rows // (m * int(np.prod(batch)))
    whole = start.expand(programs, *op.types[0].shape).reshape(groups, rows, n)
    return torch.baddbmm(whole, left, right)


def _accumulated(op: Op, x: Operand, y: Operand, c: Value) -> Shared:
    """The sum of a loop's products, added to in place.

    Where programs are the pairs of some row tiles with some column tiles, each column tile is
    multiplied with all rows at once, and the sums stay in that order until the loop ends.
    """
    shape = op.types[0].shape
    product = None
    if isinstance(x, Shared) and isinstance(y, Shared) and len(shape) == 2:
        product = crossed(x.sharing, y.sharing)
    if product is not None:
        assert isinstance(x, Shared) and isinstance(y, Shared)
        left = x.tiles.reshape(1, -1, x.tiles.shape[-1]).expand(len(y.tiles), -1, -1)
        right = y.tiles
    else:
        programs = max(map(_programs, (x, y, c)))
        product = sharing(programs, np.arange(programs))
        left, right = _factors(op, x, y, programs)
    if isinstance(c, Shared) and c.owned and c.sharing is product:
        c.tiles.view(left.shape[0], -1, shape[-1]).baddbmm_(left, right)
        return Shared(c.tiles, product, owned=True)
    start = _lanes(c)
    if start.shape[0] > 1 and product.repeat != 1:
        start = start[torch.argsort(product.index)]
    return Shared(_sum(op, start, left, right).view(-1, *shape), product, owned=True)


@lazy("arith.extf", "arith.truncf", "tt.fp_to_fp")
def _cast(op: Op, x: Value) -> Value | None:
    """What programs share is cast once."""
    return x.of(op.pure(op, x.tiles)) if isinstance(x, Shared) else None


_KEEPS_SHARING = ("arith.extf", "arith.truncf", "tt.fp_to_fp", "tt.trans")


def mark_products(program: Program) -> None:
    """Fills `shares` and `accumulates` of the operations that lead to products.

    shares: a load, cast or transposition whose result goes into products only. accumulates: a
    product that a loop carries on, and that nothing else in the loop looks at.
    """
    uses: dict[int, list[tuple[Op, int]]] = defaultdict(list)
    ops = program.walk()
    for op in ops:
        for position, slot in enumerate(op.operands):
            uses[slot].append((op, position))
        for _, arguments in op.successors:
            for slot in arguments:
                uses[slot].append((op, -1))
    for op in reversed(ops):  # a value is used after, or deeper than, where it is made
        if op.name == "tt.load" or op.name in _KEEPS_SHARING:
            op.shares = len(op.types[0].shape) > 1 and all(
                position < 2 if use.name == "tt.dot" else use.name in _KEEPS_SHARING and use.shares
                for use, position in uses[op.results[0]]
            )
        elif op.name == "scf.for":
            block = op.regions[0].entry
            for position, slot in enumerate(block.args[1:]):
                if len(uses[slot]) == 1:
                    dot, operand = uses[slot][0]
                    dot.accumulates = (
                        (dot.name, operand) == ("tt.dot", 2)
                        and any(inner is dot for inner in block.ops)
                        and dot.types[0].element == "f32"
                        and len(uses[dot.results[0]]) == 1
                        and uses[dot.results[0]][0][0] is block.ops[-1]
                        and uses[dot.results[0]][0][1] == position
                    )
