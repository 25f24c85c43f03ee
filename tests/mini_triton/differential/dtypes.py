"""Dtypes of the oracle: numpy, with what it lacks (bfloat16, 8-bit floats) held in float32.

Rounding is done here by arithmetic on the values, not by torch's casts or the simulator's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kind:
    """A Triton scalar type.

    held: the numpy dtype that values are kept in. precision: bits of a float's significand, the
    leading one included. lowest: exponent of the smallest normal number. largest: finite.
    """

    name: str
    torch: torch.dtype
    held: np.dtype[Any]
    bits: int
    precision: int = 0
    lowest: int = 0
    largest: float = 0.0

    @property
    def is_float(self) -> bool:
        """Floats of all widths."""
        return self.precision > 0

    @property
    def is_signed(self) -> bool:
        """Signed integers."""
        return self.held.kind == "i"

    @property
    def is_integer(self) -> bool:
        """Integers but int1."""
        return self.held.kind in "iu"

    @property
    def native(self) -> bool:
        """True if numpy computes in this type: what Triton's interpreter can do, too."""
        return not self.is_float or self.held.itemsize * 8 == self.bits


def _float(name: str, dtype: torch.dtype, held: str, *numbers: float) -> Kind:
    bits, precision, lowest, largest = numbers
    return Kind(name, dtype, np.dtype(held), int(bits), int(precision), int(lowest), largest)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("int1", torch.bool, np.dtype("?"), 1),
        *(
            Kind(f"{sign}int{bits}", getattr(torch, f"{sign}int{bits}"), np.dtype(held), bits)
            for sign in ("", "u")
            for bits in (8, 16, 32, 64)
            for held in [f"{sign or 'i'}{bits // 8}"]
        ),
        _float("float16", torch.float16, "f2", 16, 11, -14, 65504.0),
        _float("bfloat16", torch.bfloat16, "f4", 16, 8, -126, float.fromhex("0x1.fep127")),
        _float("float32", torch.float32, "f4", 32, 24, -126, float.fromhex("0x1.fffffep127")),
        _float("float64", torch.float64, "f8", 64, 53, -1022, float(np.finfo(np.float64).max)),
        _float("float8e4nv", torch.float8_e4m3fn, "f4", 8, 4, -6, 448.0),
        _float("float8e5", torch.float8_e5m2, "f4", 8, 3, -14, 57344.0),
    )
}
INT1 = KINDS["int1"]
INT32 = KINDS["int32"]
INTEGERS = [k for k in KINDS.values() if k.is_integer]
FLOATS = [k for k in KINDS.values() if k.is_float and k.bits > 8]
EIGHT_BIT = [k for k in KINDS.values() if k.is_float and k.bits == 8]


def rounded(values: Array, kind: Kind) -> Array:
    """Exact values (longdouble) rounded to nearest, ties to even; 8-bit floats saturate."""
    wide = values.astype(np.longdouble)
    with np.errstate(all="ignore"):
        exponent = np.frexp(wide)[1] - 1
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent, kind.lowest) - kind.precision + 1)
        result = np.where(np.isfinite(wide), np.rint(wide / unit) * unit, wide)
    if kind.bits == 8:
        result = np.clip(result, -kind.largest, kind.largest)  # NaN stays
    else:
        result = np.where(np.abs(result) > kind.largest, np.copysign(np.inf, result), result)
    with np.errstate(all="ignore"):
        return result.astype(kind.held)


def fits(values: Array, kind: Kind) -> bool:
    """True if a cast to an integer `kind` is defined for all of these floats."""
    if not np.isfinite(values).all():
        return False
    whole = np.trunc(values.astype(np.longdouble))
    limits = np.iinfo(kind.held)
    return bool((whole >= limits.min).all() and (whole <= limits.max).all())


def converted(values: Array, source: Kind, target: Kind) -> Array:
    """A cast; of floats to integers only what `fits`."""
    if target.is_float:
        return rounded(values, target)
    if target is INT1:
        return values != 0
    if source.is_float:
        return np.trunc(values.astype(np.longdouble)).astype(target.held)
    return values.astype(target.held)


def to_torch(values: Array, kind: Kind) -> torch.Tensor:
    """A tensor of the type itself; int1 as int8."""
    if kind is INT1:
        return torch.from_numpy(np.ascontiguousarray(values.astype(np.int8)))
    return torch.from_numpy(np.ascontiguousarray(values)).to(kind.torch)


def from_torch(tensor: torch.Tensor, kind: Kind) -> Array:
    """The oracle's form of a tensor."""
    if kind is INT1:
        return tensor.numpy() != 0
    return (tensor if kind.native else tensor.float()).numpy()


_POOL = {
    "float": [0.0, 1.0, -1.0, 0.5, -0.75, 2.0, 3.5, -7.25, 96.0, 1e-3, -3e4, 6e4, 1e-8],
    "odd": [np.inf, -np.inf, np.nan, -0.0],
}


def drawn(kind: Kind, shape: tuple[int, ...], rng: np.random.Generator, tame: bool) -> Array:
    """Values of a type: extremes, neighbours of zero and random bits; `tame`: small and finite."""
    if kind is INT1:
        return rng.integers(0, 2, shape).astype(bool)
    if not kind.is_float:
        limits = np.iinfo(kind.held)
        if tame:
            return rng.integers(-8 if kind.is_signed else 0, 9, shape).astype(kind.held)
        edges = [limits.min, limits.min + 1, 0, 1, 2, 7, limits.max - 1, limits.max]
        edges += [-1, -2, -7] if kind.is_signed else []
        picked = np.array([edges[k] for k in rng.integers(0, len(edges), shape).flat], kind.held)
        random = rng.integers(limits.min, limits.max, shape, kind.held, endpoint=True)
        return np.where(rng.random(shape) < 0.5, picked.reshape(shape), random)
    if tame:
        return rounded(rng.integers(-8, 9, shape) / np.longdouble(4), kind)
    pool = np.array(_POOL["float"] + _POOL["odd"])
    picked = pool[rng.integers(0, len(pool), shape)]
    random = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 13, shape)
    return rounded(np.where(rng.random(shape) < 0.4, picked, random), kind)
