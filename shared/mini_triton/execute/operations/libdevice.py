"""`tt.extern_elementwise`: the functions of NVIDIA's libdevice, by their names there.

What hardware computes exactly (rounding, bits, integers, arithmetic in a given direction) is exact
here, and float32 functions that flush subnormal numbers to zero there do so here: all was compared
with an H200. The others are computed in float64 and rounded once, which is at least as close to the
true value as libdevice, whose float32 functions are 1 to 4 units in the last place away (J and Y of
order 0 and 1 are torch's, within 1e-7); `fast_…` are no less accurate than the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from mini_triton.errors import BadProgram, UnsupportedOp
from mini_triton.execute.operations import bessel, directed, whole_numbers
from mini_triton.execute.operations.cast import to_signed
from mini_triton.execute.operations.floating import (
    fused_multiply_add,
    half_away_from_zero,
    square_root,
)
from mini_triton.execute.registry import pure
from mini_triton.ir.program import Op

Tensor = torch.Tensor
Compute = Callable[..., Tensor]


@pure("tt.extern_elementwise")
def _extern(op: Op, *values: Tensor) -> Tensor:
    compute = FUNCTIONS.get(symbol(op))
    if compute is None:  # refused before anything runs; but handlers answer for themselves
        raise UnsupportedOp(symbol(op))
    try:
        result = compute(*values)
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise BadProgram(f"{symbol(op)}: {error}") from None
    return result.to(op.types[0].dtype)


def symbol(op: Op) -> str:
    """The name of the function that an operation calls."""
    return str(op.attrs.get("symbol", ""))


# -------------------------------------------------------------------- computed in float64
def _wide(compute: Compute) -> Compute:
    """In float64, rounded to the first float operand's dtype."""

    def run(*values: Tensor) -> Tensor:
        dtype = next(v.dtype for v in values if v.is_floating_point())
        wide = [v.double() if v.is_floating_point() else v for v in values]
        return compute(*wide).to(dtype)

    return run


def _sin_pi(x: Tensor, quarter: int = 0) -> Tensor:
    """sin(πx + quarter·π/2), with x cut to a quarter turn first, which is exact."""
    half_turns = torch.fmod(x, 2.0)
    steps = torch.round(2.0 * half_turns)
    angle = torch.pi * (half_turns - 0.5 * steps)
    turn = (torch.nan_to_num(steps).to(torch.int64) + quarter) & 3
    value = torch.where(turn & 1 == 1, torch.cos(angle), torch.sin(angle))
    value = torch.where(turn >= 2, -value, value) + 0.0 * x
    sign = x if quarter == 0 else torch.ones_like(x)
    return torch.where(value == 0, torch.copysign(value, sign), value)


def _gamma(x: Tensor) -> Tensor:
    def one(value: float) -> float:
        try:
            return math.gamma(value)
        except OverflowError:
            return math.inf
        except ValueError:  # a pole: infinite at zero, of the zero's sign; no number elsewhere
            return math.copysign(math.inf, value) if value == 0.0 else math.nan

    return torch.tensor([one(v) for v in x.flatten().tolist()], dtype=x.dtype).reshape(x.shape)


def _inverse_erfc(x: Tensor) -> Tensor:
    return 0.0 - torch.special.ndtri(0.5 * x) / math.sqrt(2.0)


def _norm(*values: Tensor) -> Tensor:
    result = values[0].abs()
    for value in values[1:]:
        result = torch.hypot(result, value)
    return result


def _cube_root(x: Tensor) -> Tensor:
    return torch.from_numpy(np.asarray(np.cbrt(x.numpy())))


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    """IEEE 754's remainder, x − y·n with n = x/y rounded to nearest even; exact."""
    size = y.abs()
    rest = torch.fmod(x.abs(), 2.0 * size)
    first = rest > size - rest  # rest > size/2, without halving
    rest = torch.where(first, rest - size, rest)
    rest = torch.where(first & (rest >= size - rest), rest - size, rest)
    return torch.where(torch.signbit(x), -rest, rest)


def _positive_difference(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x <= y, torch.zeros_like(x), x - y)


#: name → function of float64: `__nv_<name>f` takes and gives float32, `__nv_<name>` float64.
_IN_FLOAT64: dict[str, Compute] = {
    "acos": torch.acos,
    "acosh": torch.acosh,
    "asin": torch.asin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "atan2": torch.atan2,
    "atanh": torch.atanh,
    "cbrt": _cube_root,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "cospi": lambda x: _sin_pi(x, 1),
    "cyl_bessel_i0": lambda x: torch.where(torch.isinf(x), torch.inf, torch.special.i0(x)),
    "cyl_bessel_i1": lambda x: torch.where(torch.isinf(x), x, torch.special.i1(x)),
    "erf": torch.erf,
    "erfc": torch.erfc,
    "erfcinv": _inverse_erfc,
    "erfcx": torch.special.erfcx,
    "erfinv": torch.erfinv,
    "exp": torch.exp,
    "exp10": lambda x: torch.pow(10.0, x),
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "fdim": _positive_difference,
    "fmod": torch.fmod,
    "hypot": torch.hypot,
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "jn": bessel.first_kind,
    "lgamma": torch.lgamma,
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "norm3d": _norm,
    "norm4d": _norm,
    "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri,
    "pow": torch.pow,
    "powi": lambda x, n: torch.pow(x, n.double()),
    "rcbrt": lambda x: 1.0 / _cube_root(x),
    "remainder": _remainder,
    "rhypot": lambda *xs: 1.0 / _norm(*xs),
    "rnorm3d": lambda *xs: 1.0 / _norm(*xs),
    "rnorm4d": lambda *xs: 1.0 / _norm(*xs),
    "rsqrt": lambda x: 1.0 / square_root(x),
    "sin": torch.sin,
    "sinh": torch.sinh,
    "sinpi": _sin_pi,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "tgamma": _gamma,
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
    "yn": bessel.second_kind,
}

#: `__nv_fast_<name>f`.
_FAST: dict[str, Compute] = {
    **{name: _IN_FLOAT64[name] for name in ("cos", "exp", "exp10", "log", "log10", "log2", "sin")},
    "pow": lambda x, y: torch.exp2(y * torch.log2(x)),
    "tan": torch.tan,
}


# -------------------------------------------------------------------- exact
def _scaled(x: Tensor, n: Tensor) -> Tensor:
    """x·2ⁿ, rounded once."""
    with np.errstate(over="ignore", under="ignore"):
        return torch.from_numpy(np.asarray(np.ldexp(x.numpy(), n.numpy())))


def _exponent(x: Tensor) -> Tensor:
    """⌊log₂ |x|⌋ of finite numbers but zero."""
    return torch.frexp(x).exponent - 1


def _exponent_as_float(x: Tensor) -> Tensor:
    result = torch.where(x == 0, -torch.inf, _exponent(x).to(x.dtype))
    return torch.where(torch.isfinite(x), result, x.abs())


def _exponent_as_integer(x: Tensor) -> Tensor:
    limits = torch.iinfo(torch.int32)
    result = torch.where(torch.isinf(x), limits.max, _exponent(x).to(torch.int64))
    return torch.where((x == 0) | torch.isnan(x), limits.min, result).to(torch.int32)


#: `__nv_<name>f` and `__nv_<name>`, in the operands' own precision.
_EXACT: dict[str, Compute] = {
    "ceil": torch.ceil,
    "copysign": torch.copysign,
    "fabs": torch.abs,
    "floor": torch.floor,
    "fma": fused_multiply_add,
    "ilogb": _exponent_as_integer,
    "ldexp": _scaled,
    "llrint": lambda x: to_signed(torch.round(x), torch.int64),
    "llround": lambda x: to_signed(half_away_from_zero(x), torch.int64),
    "logb": _exponent_as_float,
    "nearbyint": torch.round,
    "nextafter": torch.nextafter,
    "rint": torch.round,
    "round": half_away_from_zero,
    "scalbn": _scaled,
    "sqrt": square_root,
    "trunc": torch.trunc,
}


def _as(dtype: torch.dtype) -> Compute:
    return lambda x: x.contiguous().view(dtype)


def _from_halves(high: Tensor, low: Tensor) -> Tensor:
    wide = (high.to(torch.int64) << 32) | (low.to(torch.int64) & 0xFFFFFFFF)
    return wide.view(torch.float64)


def _half(x: Tensor, shift: int) -> Tensor:
    return (x.contiguous().view(torch.int64) >> shift).to(torch.int32)


def _upper_half_of_reciprocal(x: Tensor) -> Tensor:
    """1/x with the lower 32 bits zero."""
    bits = (1.0 / x).contiguous().view(torch.int64)
    return (bits & -(1 << 32)).view(torch.float64)


FUNCTIONS: dict[str, Compute] = {
    **{f"__nv_{name}": _wide(compute) for name, compute in _IN_FLOAT64.items()},
    **{f"__nv_{name}f": _wide(compute) for name, compute in _IN_FLOAT64.items()},
    **{f"__nv_fast_{name}f": _wide(compute) for name, compute in _FAST.items()},
    **{f"__nv_{name}": compute for name, compute in _EXACT.items()},
    **{f"__nv_{name}f": compute for name, compute in _EXACT.items()},
    **directed.FUNCTIONS,
    **whole_numbers.FUNCTIONS,
    "__nv_powif": _wide(_IN_FLOAT64["powi"]),
    "__nv_fast_fdividef": torch.div,
    "__nv_frsqrt_rn": _wide(_IN_FLOAT64["rsqrt"]),
    "__nv_saturatef": lambda x: torch.nan_to_num(x, nan=0.0).clamp(0.0, 1.0) + 0.0,
    "__nv_rcp64h": _upper_half_of_reciprocal,
    "__nv_isnanf": torch.isnan,
    "__nv_isnand": torch.isnan,
    "__nv_isinff": torch.isinf,
    "__nv_isinfd": torch.isinf,
    "__nv_finitef": torch.isfinite,
    "__nv_isfinited": torch.isfinite,
    "__nv_signbitf": torch.signbit,
    "__nv_signbitd": torch.signbit,
    "__nv_int_as_float": _as(torch.float32),
    "__nv_uint_as_float": _as(torch.float32),
    "__nv_float_as_int": _as(torch.int32),
    "__nv_float_as_uint": _as(torch.int32),
    "__nv_longlong_as_double": _as(torch.float64),
    "__nv_double_as_longlong": _as(torch.int64),
    "__nv_hiloint2double": _from_halves,
    "__nv_double2hiint": lambda x: _half(x, 32),
    "__nv_double2loint": lambda x: _half(x, 0),
}


# -------------------------------------------------------------------- subnormal numbers
# fmt: off
#: The float32 functions that read and return subnormal numbers as zero, as seen on an H200.
_FLUSHING_NAMES = (
    "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cyl_bessel_i1", "erf", "erfcinv", "erfcx",
    "expm1", "fabs", "floor", "fma", "fmod", "hypot", "ilogb", "j1", "lgamma", "log1p", "norm3d",
    "norm4d", "normcdfinv", "powi", "remainder", "rhypot", "rnorm3d", "rnorm4d", "rsqrt",
    "saturate", "sin", "sinh", "sinpi", "sqrt", "tan", "tanh", "y0",
)
# fmt: on
_FLUSHING_OPERATIONS = (
    *(f"f{name}" for name in ("add", "sub", "mul", "div", "rcp", "sqrt", "maf")),
    *(f"float2{kind}" for kind in ("int", "uint", "ll", "ull")),
    "double2float",
)
_FLUSHING = (
    *(f"__nv_{name}f" for name in _FLUSHING_NAMES),
    *(f"__nv_{name}_{mode}" for name in _FLUSHING_OPERATIONS for mode in directed.MODES),
    *(f"__nv_fast_{name}f" for name in _FAST),
    "__nv_fast_fdividef",
    "__nv_frsqrt_rn",
)


def _flushed(x: Tensor) -> Tensor:
    """float32 with zeros, of the same sign, for subnormal numbers; others as they are."""
    if x.dtype != torch.float32:
        return x
    subnormal = x.abs() < torch.finfo(torch.float32).tiny
    return torch.where(subnormal, torch.copysign(torch.zeros_like(x), x), x)


def _flushing(compute: Compute) -> Compute:
    return lambda *values: _flushed(compute(*map(_flushed, values)))


FUNCTIONS |= {name: _flushing(FUNCTIONS[name]) for name in _FLUSHING}
