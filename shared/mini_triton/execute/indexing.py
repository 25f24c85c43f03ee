"""Index arithmetic on formulas (`affine`): what needs no lanes is done without them.

Each rule returns None where it does not apply; the operation then runs on lanes as any other does.
The rules are exact: a result that could leave its dtype's range, where the kernel would wrap, is no
formula.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from mini_triton.execute.affine import INDEX_DTYPES, Affine, constant, per_program
from mini_triton.execute.registry import lazy
from mini_triton.execute.shared_tiles import Shared
from mini_triton.execute.values import Value
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


_DECIDED: dict[str, Callable[[int, int], bool | None]] = {
    # (lowest, highest) of a − b → the answer for every lane, None if lanes differ.
    "slt": lambda low, high: True if high < 0 else False if low >= 0 else None,
    "sle": lambda low, high: True if high <= 0 else False if low > 0 else None,
    "sgt": lambda low, high: True if low > 0 else False if high <= 0 else None,
    "sge": lambda low, high: True if low >= 0 else False if high < 0 else None,
    "eq": lambda low, high: False if high < 0 or low > 0 else True if low == high == 0 else None,
    "ne": lambda low, high: True if high < 0 or low > 0 else False if low == high == 0 else None,
}


@lazy("arith.cmpi")
def _compare(op: Op, a: Value, b: Value) -> Value | None:
    """A comparison that the ranges decide, for all lanes at once."""
    both = _formulas(a, b)
    decide = _DECIDED.get(op.keywords[0])
    if both is None or decide is None:
        return None
    difference = both[0].plus(both[1], -1)
    answer = decide(difference.lowest, difference.highest)
    if answer is None:
        return None
    return torch.full((1,) * (1 + len(difference.steps)), answer)


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
    if kind.dtype not in INDEX_DTYPES:
        return None
    return constant(int(value), kind.dtype, len(kind.shape)).fits()


@lazy("tt.make_range")
def _range(op: Op) -> Value | None:
    start, end = op.attrs["start"], op.attrs["end"]
    return Affine(torch.int32, start, start, start, (int(end - start > 1),), (end - start,))


@lazy("tt.splat")
def _splat(op: Op, a: Value) -> Value | None:
    formula = _formula(a)
    return formula and formula.splat(len(op.types[0].shape))


@lazy("tt.unsplat")
def _unsplat(op: Op, a: Value) -> Value | None:
    return a.with_axes((), ()) if isinstance(a, Affine) else None


@lazy("tt.broadcast", "ttg.convert_layout")
def _broadcast(op: Op, a: Value) -> Value | None:
    return a if isinstance(a, Affine) else None


@lazy("tt.expand_dims")
def _expand_dims(op: Op, a: Value) -> Value | None:
    return a.expand_dims(op.attrs["axis"]) if isinstance(a, Affine) else None


@lazy("tt.trans")
def _transpose(op: Op, a: Value) -> Value | None:
    return a.transpose(tuple(op.attrs["order"])) if isinstance(a, Affine | Shared) else None
