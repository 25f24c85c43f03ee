"""`arith` and `math` on floats, in the operands' own precision.

16-bit floats are computed in float32 and rounded to nearest even after every operation, as torch
does. 8-bit floats go through float32 the same way. `divf` and `sqrt` are correctly rounded; GPU
code may use faster ones, 1–2 ulp away, unless `div_rn` or `sqrt_rn` is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from mini_triton.execute.operations.cast import rounded
from mini_triton.execute.registry import OVER, pure
from mini_triton.ir.program import Op

Tensor = torch.Tensor

_EIGHT_BIT = {
    torch.float8_e5m2,
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
}


def _register(name: str, compute: Callable[..., Tensor]) -> None:
    def handler(op: Op, *values: Tensor) -> Tensor:
        dtype = values[0].dtype
        if dtype in _EIGHT_BIT:
            result = compute(*(v.float() for v in values))
            return rounded(result, dtype) if result.is_floating_point() else result
        return compute(*values)

    pure(name)(handler)


def two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a + b as the rounded sum and its exact error (Knuth), float64."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def _two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a·b as the rounded product and its exact error (Dekker), float64."""

    def halves(x: Tensor) -> tuple[Tensor, Tensor]:
        scaled = x * 134_217_729.0  # 2^27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def rounded_to_odd(total: Tensor, error: Tensor) -> Tensor:
    """`total + error` cut to float64 so that rounding it again gives what one rounding would.

    `total` is the sum rounded to nearest; where that was not exact, the one of the two float64
    around the true sum whose last bit is odd is taken.
    """
    inexact = torch.isfinite(total) & torch.isfinite(error) & (error != 0)
    bits = total.view(torch.int64)
    outward = (error > 0) == (total > 0)
    odd = torch.where(bits & 1 == 1, bits, torch.where(outward, bits + 1, bits - 1))
    return torch.where(inexact, odd.view(torch.float64), total)


def fused_multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a·b + c rounded once.

    Products of float32 and narrower are exact in float64. For float64 itself the algorithm of Boldo
    and Melquiond (2008), "Emulation of FMA and correctly rounded sums".
    """
    if a.dtype != torch.float64:
        return rounded(rounded_to_odd(*two_sum(a.double() * b.double(), c.double())), a.dtype)
    product, low = _two_product(a, b)
    if not bool((torch.isfinite(product) & torch.isfinite(low)).all()):
        low = torch.where(torch.isfinite(low), low, torch.zeros_like(low))
    near, rest = two_sum(c, low)
    high, error = two_sum(product, near)
    total = high + rounded_to_odd(*two_sum(rest, error))
    return torch.where(torch.isfinite(total), total, a * b + c)


#: A multiple of the lanes that torch's vector loops take at once, on any processor.
_VECTOR = 64


def _power_of_two(x: Tensor) -> Tensor:
    """In full vectors only: torch's float32 exp2 gives other bits in the last lanes of a row.

    Narrower floats go by way of float64, which rounds once.
    """
    if x.dtype != torch.float32:
        return torch.exp2(x.double()).to(x.dtype)
    missing = -x.numel() % _VECTOR
    if not missing:
        return torch.exp2(x.contiguous())
    padded = torch.cat([x.reshape(-1), x.new_zeros(missing)])
    return torch.exp2(padded)[: x.numel()].reshape(x.shape)


def square_root(x: Tensor) -> Tensor:
    """By numpy: torch leaves it to MKL, which on some processors is off by a last place."""
    if x.dtype.itemsize < 4:
        return square_root(x.float()).to(x.dtype)
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.asarray(np.sqrt(x.numpy())))


def half_away_from_zero(x: Tensor) -> Tensor:
    """To the nearest whole number, ties away from zero."""
    whole = torch.trunc(x)
    return torch.where((x - whole).abs() >= 0.5, whole + torch.sign(x), whole)


_HANDLERS: dict[str, Callable[..., Tensor]] = {
    "arith.addf": torch.add,
    "arith.subf": torch.sub,
    "arith.mulf": torch.mul,
    "arith.divf": torch.div,
    "arith.remf": torch.fmod,
    "arith.negf": torch.neg,
    "arith.maximumf": torch.maximum,  # NaN if either is NaN
    "arith.minimumf": torch.minimum,
    "arith.maxnumf": torch.fmax,  # the other one if one is NaN
    "arith.minnumf": torch.fmin,
    "tt.precise_divf": torch.div,
    "tt.precise_sqrt": square_root,
    "math.absf": torch.abs,
    "math.ceil": torch.ceil,
    "math.floor": torch.floor,
    "math.trunc": torch.trunc,
    "math.round": half_away_from_zero,
    "math.roundeven": torch.round,
    "math.sqrt": square_root,
    "math.rsqrt": torch.rsqrt,
    "math.exp": torch.exp,
    "math.exp2": _power_of_two,
    "math.expm1": torch.expm1,
    "math.log": torch.log,
    "math.log2": torch.log2,
    "math.log10": torch.log10,
    "math.log1p": torch.log1p,
    "math.sin": torch.sin,
    "math.cos": torch.cos,
    "math.tan": torch.tan,
    "math.asin": torch.asin,
    "math.acos": torch.acos,
    "math.atan": torch.atan,
    "math.atan2": torch.atan2,
    "math.sinh": torch.sinh,
    "math.cosh": torch.cosh,
    "math.tanh": torch.tanh,
    "math.erf": torch.erf,
    "math.powf": torch.pow,
    "math.copysign": torch.copysign,
    "math.fma": fused_multiply_add,
}
for _name, _compute in _HANDLERS.items():
    _register(_name, _compute)
#: Those that give the same bits wherever they write them.
OVER |= {
    name: _HANDLERS[name]
    for name in (
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.divf",
        "arith.negf",
        "arith.maximumf",
        "arith.minimumf",
        "arith.maxnumf",
        "arith.minnumf",
        "tt.precise_divf",
        "math.absf",
        "math.exp",
    )
}


@pure("tt.clampf")
def _clamp(op: Op, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """min(max(x, low), high); NaN is kept or replaced by `low` as the operation says."""
    if "all" in (*op.keywords, str(op.attrs.get("propagateNan", ""))):
        return torch.minimum(torch.maximum(x, low), high)
    return torch.fmin(torch.fmax(x, low), high)


_ORDER: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
}


@pure("arith.cmpf")
def _compare(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """Ordered predicates (o…) are false where a NaN is, unordered ones (u…) true."""
    predicate = op.keywords[0]
    if a.dtype in _EIGHT_BIT:
        a, b = a.float(), b.float()
    if predicate in ("true", "false"):
        return torch.full_like(a, predicate == "true", dtype=torch.bool)
    unordered = torch.isnan(a) | torch.isnan(b) if predicate not in _NAN_IS_RIGHT else None
    if predicate == "uno":
        assert unordered is not None
        return unordered
    if predicate == "ord":
        assert unordered is not None
        return ~unordered
    result = _ORDER[predicate[1:]](a, b)
    if unordered is None:
        return result
    return result | unordered if predicate[0] == "u" else result & ~unordered


#: Predicates for which the comparison itself already answers rightly for NaN.
_NAN_IS_RIGHT = {"oeq", "olt", "ole", "ogt", "oge", "une"}
