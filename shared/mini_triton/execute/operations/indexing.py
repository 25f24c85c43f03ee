"""Index arithmetic on formulas (`affine`): what needs no lanes is done without them.

Each rule returns None where it does not apply; the operation then runs on lanes as any other does.
The rules are exact: a result that could leave its dtype's range, where the kernel would wrap, is no
formula.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from mini_triton.execute.registry import lazy
from mini_triton.execute.tiles.affine import INDEX_DTYPES, Affine, constant, formula, per_program
from mini_triton.execute.tiles.diagonal import Diagonal, below_diagonal
from mini_triton.execute.tiles.mask import Mask, below_zero, decided, is_zero
from mini_triton.execute.tiles.shared_tiles import Shared
from mini_triton.execute.tiles.values import Value, dense
from mini_triton.ir.program import Op

Tensor = torch.Tensor


def _formula(value: Value) -> Affine | None:
    if isinstance(value, Affine):
        return value
    return per_program(value) if isinstance(value, torch.Tensor) else None


def _formulas(a: Value, b: Value) -> tuple[Affine, Affine] | None:
    """Both operands as formulas, if at least one is given as one."""
    if not isinstance(a, Affine) and not isinstance(b, Affine):
        return None
    left, right = _formula(a), _formula(b)
    return (left, right) if left is not None and right is not None else None


@lazy("arith.addi")
def _add(op: Op, a: Value, b: Value) -> Value | None:
    both = _formulas(a, b)
    return both and both[0].plus(both[1]).fits()


@lazy("arith.subi")
def _subtract(op: Op, a: Value, b: Value) -> Value | None:
    both = _formulas(a, b)
    return both and both[0].plus(both[1], -1).fits()


@lazy("arith.muli")
def _multiply(op: Op, a: Value, b: Value) -> Value | None:
    both = _formulas(a, b)
    if both is None:
        return None
    left, right = both
    if (factor := right.uniform) is not None:
        return left.times(factor).fits()
    if (factor := left.uniform) is not None:
        return right.times(factor).fits()
    return None


def _truncating(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "arith.divsi": _truncating,
    "arith.remsi": lambda a, b: a - b * _truncating(a, b),
    "arith.minsi": min,
    "arith.maxsi": max,
}


@lazy("arith.divsi", "arith.remsi", "arith.minsi", "arith.maxsi")
def _on_numbers(op: Op, a: Value, b: Value) -> Value | None:
    """Two numbers; or a bound that no lane reaches."""
    both = _formulas(a, b)
    if both is None:
        return None
    left, right = both
    x, y = left.uniform, right.uniform
    if x is not None and y is not None and (y != 0 or op.name in ("arith.minsi", "arith.maxsi")):
        return constant(_NUMBERS[op.name](x, y), left.dtype, len(left.steps)).fits()
    if op.name == "arith.remsi":
        return left if y is not None and left.lowest >= 0 and left.highest < y else None
    if op.name == "arith.minsi":
        return (
            left
            if left.highest <= right.lowest
            else right
            if right.highest <= left.lowest
            else None
        )
    if op.name == "arith.maxsi":
        return (
            left
            if left.lowest >= right.highest
            else right
            if right.lowest >= left.highest
            else None
        )
    return None


@lazy("arith.cmpi")
def _compare(op: Op, a: Value, b: Value) -> Mask | Diagonal | None:
    both = _formulas(a, b)
    return _masks.get(op.keywords[0], _no_mask)(*both) if both is not None else None


_masks: dict[str, Callable[[Affine, Affine], Mask | Diagonal | None]] = {
    "slt": lambda a, b: _negative(a.plus(b, -1)),
    "sgt": lambda a, b: _negative(b.plus(a, -1)),
    "sle": lambda a, b: _negative(_less_one(a.plus(b, -1))),
    "sge": lambda a, b: _negative(_less_one(b.plus(a, -1))),
    "eq": lambda a, b: is_zero(a.plus(b, -1)),
    "ne": lambda a, b: is_zero(a.plus(b, -1), negated=True),
}


def _no_mask(a: Affine, b: Affine) -> None:
    return None


def _negative(difference: Affine) -> Mask | Diagonal | None:
    return below_zero(difference) or below_diagonal(difference)


def _less_one(difference: Affine) -> Affine:
    return difference.plus(constant(-1, difference.dtype, len(difference.steps)))


@lazy("arith.andi")
def _and(op: Op, a: Value, b: Value) -> Value | None:
    if isinstance(a, Mask) and isinstance(b, Mask):
        return a.both(b)
    for mask, other in ((a, b), (b, a)):
        if isinstance(mask, Mask) and mask.decided is not None:
            return other if mask.decided else mask
    return None


@lazy("arith.select")
def _select(op: Op, condition: Value, a: Value, b: Value) -> Value | None:
    """One of the two, where the condition is the same in every lane, or in most programs'."""
    if isinstance(condition, Diagonal):
        x, y = dense(a), dense(b)
        if isinstance(x, Tensor) and isinstance(y, Tensor) and x.shape[1:] == op.types[0].shape:
            return condition.select(x, y)
        return None
    if not isinstance(condition, Mask):
        return None
    if condition.decided is not None:
        return a if condition.decided else b
    x, y = dense(a), dense(b)
    if isinstance(x, Tensor) and isinstance(y, Tensor) and len(condition.sizes) == x.ndim - 1:
        return condition.select(x, y)
    return None


@lazy("arith.extsi", "arith.index_cast", "arith.trunci")
def _resize(op: Op, a: Value) -> Value | None:
    dtype = op.types[0].dtype
    if not isinstance(a, Affine) or dtype not in INDEX_DTYPES:
        return None
    return a.with_dtype(dtype).fits()


@lazy("arith.constant")
def _constant(op: Op) -> Value | None:
    kind, value = op.types[0], op.attrs["value"]
    if isinstance(value, list) or kind.is_pointer or kind.is_float:
        return None
    if kind.dtype == torch.bool:
        return decided(bool(int(value) & 1), len(kind.shape))
    if kind.dtype not in INDEX_DTYPES:
        return None
    return constant(int(value), kind.dtype, len(kind.shape)).fits()


@lazy("tt.make_range")
def _range(op: Op) -> Value | None:
    start, end = op.attrs["start"], op.attrs["end"]
    return formula(torch.int32, start, (), (int(end - start > 1),), (end - start,))


@lazy("tt.splat")
def _splat(op: Op, a: Value) -> Value | None:
    of = a if isinstance(a, Mask) else _formula(a)
    return of and of.splat(len(op.types[0].shape))


@lazy("tt.unsplat")
def _unsplat(op: Op, a: Value) -> Value | None:
    return a.with_axes((), ()) if isinstance(a, Affine) else None


@lazy("tt.broadcast", "ttg.convert_layout")
def _broadcast(op: Op, a: Value) -> Value | None:
    return a if isinstance(a, (Affine, Mask, Diagonal)) else None


@lazy("tt.expand_dims")
def _expand_dims(op: Op, a: Value) -> Value | None:
    return a.expand_dims(op.attrs["axis"]) if isinstance(a, (Affine, Mask)) else None


@lazy("tt.trans")
def _transpose(op: Op, a: Value) -> Value | None:
    if not isinstance(a, (Affine, Mask, Shared)):
        return None
    return a.transpose(tuple(op.attrs["order"]))
