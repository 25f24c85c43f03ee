"""Conversions between dtypes, with the rounding and saturation of the hardware.

Float → narrower float rounds to nearest even, once (`cvt.rn`); to 8-bit floats it saturates to the
largest finite value (`cvt.rn.satfinite`); with `fp_downcast_rounding="rtz"` it rounds toward zero.
Float → integer truncates and saturates (`cvt.rzi`); 8-bit integers are cut from 16-bit ones. NaN
becomes 0, or the top bit alone where 64 bits take part. Casts between all dtypes
were compared with an H200's, bit for bit.
"""

from __future__ import annotations

import numpy as np
import torch

from mini_triton.execute.operations.integer import bits_of, unsigned
from mini_triton.execute.registry import pure
from mini_triton.execute.tiles.values import Lanes, Pointer
from mini_triton.ir.program import Op
from mini_triton.ir.types import INTEGER_OF_SIZE

Tensor = torch.Tensor


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """`x` rounded once, to nearest even, to a float `dtype`."""
    if x.dtype == torch.float64 and dtype.itemsize < 4:
        if dtype == torch.float16:  # torch rounds twice here, by way of float32; numpy once
            with np.errstate(over="ignore"):
                return torch.from_numpy(x.contiguous().numpy().astype(np.float16))
        return rounded(_to_odd_float32(x), dtype)
    if dtype.itemsize == 1:
        limit = torch.finfo(dtype).max
        return x.float().clamp(-limit, limit).to(dtype)
    return x.to(dtype)


def _to_odd_float32(x: Tensor) -> Tensor:
    """float64 → float32 rounded to odd: rounding the result again gives what one rounding would."""
    nearest = x.float()
    exact = nearest.double() == x
    away = nearest.double().abs() > x.abs()
    bits = nearest.contiguous().view(torch.int32)
    toward_zero = torch.where(away, bits - 1, bits)
    odd = torch.where(exact | ~torch.isfinite(x), bits, toward_zero | 1)
    return odd.view(torch.float32)


def _toward_zero(x: Tensor, dtype: torch.dtype) -> Tensor:
    nearest = rounded(x, dtype)
    bits = nearest.contiguous().view(INTEGER_OF_SIZE[dtype.itemsize])
    too_far = nearest.to(x.dtype).abs() > x.abs()
    return torch.where(too_far, bits - 1, bits).view(dtype)


@pure("arith.truncf", "tt.fp_to_fp", "arith.extf")
def _float_to_float(op: Op, x: Tensor) -> Tensor:
    dtype = op.types[0].dtype
    if op.attrs.get("rounding") == "rtz" or "rtz" in op.keywords:
        return _toward_zero(x, dtype)
    if dtype.itemsize > x.dtype.itemsize or dtype == x.dtype:
        return x.to(dtype)
    return rounded(x, dtype)


@pure("arith.sitofp")
def _signed_to_float(op: Op, x: Tensor) -> Tensor:
    dtype = op.types[0].dtype
    if x.dtype == torch.bool:  # a signed 1-bit integer: true is −1
        return (-x.to(torch.float32)).to(dtype)
    if dtype.itemsize >= 4:
        return x.to(dtype)
    return rounded(torch.from_numpy(_odd_float64(x.numpy())), dtype)


@pure("arith.uitofp")
def _unsigned_to_float(op: Op, x: Tensor) -> Tensor:
    dtype = op.types[0].dtype
    wide = unsigned(x)
    if dtype.itemsize >= 4:
        return torch.from_numpy(wide.astype(np.float32 if dtype.itemsize == 4 else np.float64))
    return rounded(torch.from_numpy(_odd_float64(wide)), dtype)


def _odd_float64(x: np.ndarray) -> np.ndarray:
    """Integers → float64; what it cannot hold gets an odd last bit: rounding again is then safe."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    lost = (x & 0x7FF).astype(bool)
    cut = ((x >> 11) | lost).astype(np.float64) * 2.0**11
    small = (x < 2**53) & ((x > -(2**53)) if x.dtype.kind == "i" else True)
    return np.where(small, x.astype(np.float64), cut)


def _saturated(x: Tensor, low: int, high: int, nan: int) -> Tensor:
    """Truncated toward zero and clamped to [low, high] of at most 64 bits, signed; int64."""
    wide = torch.nan_to_num(x.double(), nan=0.0, posinf=torch.inf, neginf=-torch.inf).trunc()
    # float64 cannot hold 2^63 − 1: compare before converting.
    above, below = wide >= float(high), wide <= float(low)
    inside = torch.where(above | below, torch.zeros_like(wide), wide).to(torch.int64)
    inside = torch.where(above, torch.full_like(inside, high), inside)
    inside = torch.where(below, torch.full_like(inside, low), inside)
    return torch.where(torch.isnan(x), torch.full_like(inside, nan), inside)


def _conversion_width(dtype: torch.dtype) -> int:
    """Bits that a float is converted to: 8-bit integers are the low half of a 16-bit conversion."""
    return max(16, bits_of(dtype))


def _of_nan(x: Tensor, width: int) -> int:
    """What NaN becomes: 0, or the top bit alone where float64 or 64 bits take part."""
    return 1 << (width - 1) if x.dtype == torch.float64 or width == 64 else 0


@pure("arith.fptosi")
def _float_to_signed(op: Op, x: Tensor) -> Tensor:
    return to_signed(x, op.types[0].dtype)


def to_signed(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Floats truncated and saturated to a signed integer `dtype`."""
    if dtype == torch.bool:
        return x.double().trunc() != 0
    width = _conversion_width(dtype)
    top = 1 << (width - 1)
    return _saturated(x, -top, top - 1, -_of_nan(x, width)).to(dtype)


@pure("arith.fptoui")
def _float_to_unsigned(op: Op, x: Tensor) -> Tensor:
    return to_unsigned(x, op.types[0].dtype)


def to_unsigned(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Floats truncated and saturated to unsigned integers, as the bits of `dtype`."""
    if dtype == torch.bool:
        return x.double().trunc() != 0
    width = _conversion_width(dtype)
    if width < 64:
        return _saturated(x, 0, (1 << width) - 1, _of_nan(x, width)).to(dtype)
    wide = torch.nan_to_num(x.double(), nan=2.0**63).trunc().clamp(min=0.0)
    top = wide >= 2.0**63
    low = torch.where(top, wide - 2.0**63, wide).clamp(max=2.0**63 - 1024)
    result = low.to(torch.int64) ^ torch.where(top, torch.iinfo(torch.int64).min, 0)
    return torch.where(wide >= 2.0**64, torch.full_like(result, -1), result)


@pure("arith.extsi")
def _extend_signed(op: Op, x: Tensor) -> Tensor:
    wide = x.to(op.types[0].dtype)
    return -wide if x.dtype == torch.bool else wide


@pure("arith.extui")
def _extend_unsigned(op: Op, x: Tensor) -> Tensor:
    dtype = op.types[0].dtype
    if x.dtype == torch.bool:
        return x.to(dtype)
    return x.to(dtype) & ((1 << bits_of(x.dtype)) - 1)


@pure("arith.trunci")
def _truncate(op: Op, x: Tensor) -> Tensor:
    dtype = op.types[0].dtype
    return (x & 1).to(torch.bool) if dtype == torch.bool else x.to(dtype)


@pure("arith.index_cast", "arith.index_castui")
def _index_cast(op: Op, x: Tensor) -> Tensor:
    return x.to(op.types[0].dtype)


@pure("arith.bitcast", "tt.bitcast")
def _bitcast(op: Op, x: Lanes) -> Lanes:
    kind = op.types[0]
    if isinstance(x, Pointer):
        assert kind.pointee is not None
        return x.cast(kind.pointee.dtype)
    if x.dtype == torch.bool or kind.dtype == torch.bool:
        return x.to(kind.dtype)
    return x.contiguous().view(kind.dtype)
