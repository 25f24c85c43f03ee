"""Dtypes of values: what a stored element costs, what two of them make, and how they round.

`weak` is the dtype of a literal number in the program, as of `x * 2`: it stands in the kernel's
instructions, costs no bytes, and takes the dtype of what it meets (as Python numbers do in torch).
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Bytes of one element in memory.
ITEMSIZE = {"bool": 1, "bf16": 2, "f16": 2, "f32": 4, "f64": 8, "weak": 0}
DTYPES = tuple(name for name in ITEMSIZE if name != "weak")
_RANK = {"weak": 0, "bool": 1, "bf16": 2, "f16": 2, "f32": 3, "f64": 4}


def promote(dtypes: tuple[str, ...]) -> str:
    """The dtype of arithmetic on these: the widest one; bf16 with f16 is f32, as in torch."""
    widest = max(dtypes, key=_RANK.__getitem__)
    if {"bf16", "f16"} <= set(dtypes) and _RANK[widest] == 2:
        return "f32"
    return widest


def rounded(value: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The nearest values that `dtype` has, to even where two are as near; in float64 again."""
    if dtype == "bool":
        return value.astype(bool)
    if dtype in ("f64", "weak"):
        return value.astype(np.float64)
    with np.errstate(over="ignore"):
        if dtype == "f16":
            return value.astype(np.float16).astype(np.float64)
        single = value.astype(np.float32)
        if dtype == "bf16":
            single = _round_to_bf16(single)
    return single.astype(np.float64)


def _round_to_bf16(single: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """bf16 is the upper half of float32: add half of the last place, and one if that is odd.

    Rounded twice, over float32, as hardware does that computes in float32 and stores bf16.
    """
    bits = np.ascontiguousarray(single).view(np.uint32).reshape(single.shape)
    up = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(single), single, up.view(np.float32))
