"""`arith` and `math` on floats, in the operands' own precision.

16-bit floats are computed in float32 and rounded to nearest even after every operation, which torch
does. 8-bit floats go through float32 the same way. `divf` and `sqrt` are correctly rounded;
Triton's GPU code may use faster ones, 1–2 ulp away, unless `div_rn` or `sqrt_rn` is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from mini_triton.execute.registry import pure
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
            return result.to(dtype) if result.is_floating_point() else result
        return compute(*values)

    pure(name)(handler)


def _fused_multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """One rounding for float32 and narrower: their products are exact in float64."""
    if a.dtype == torch.float64:
        return a * b + c
    return (a.double() * b.double() + c.double()).to(a.dtype)


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
    "tt.precise_sqrt": torch.sqrt,
    "math.absf": torch.abs,
    "math.ceil": torch.ceil,
    "math.floor": torch.floor,
    "math.trunc": torch.trunc,
    "math.round": torch.round,
    "math.roundeven": torch.round,
    "math.sqrt": torch.sqrt,
    "math.rsqrt": torch.rsqrt,
    "math.exp": torch.exp,
    "math.exp2": torch.exp2,
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
    "math.fma": _fused_multiply_add,
}
for _name, _compute in _HANDLERS.items():
    _register(_name, _compute)


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
