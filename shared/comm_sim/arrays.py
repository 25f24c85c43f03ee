"""What collectives take: one 1-D numpy array for each rank; and how it is cut into blocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def check_array(array: object, what: str) -> None:
    """Raises a `ValueError` unless `array` is a numpy array of plain data."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{what} is a {type(array).__name__}; give a numpy array")
    if array.dtype.hasobject:
        raise ValueError(
            f"{what} holds Python objects ({array.dtype}), which have no size in bytes"
        )


def check_pieces(n: int, arrays: Sequence[Array], what: str = "the array of rank {}") -> None:
    """Raises a `ValueError` unless these are n 1-D arrays of one dtype; lengths may differ."""
    if len(arrays) != n:
        raise ValueError(f"{n} arrays are needed, one for each rank; there are {len(arrays)}")
    for rank, array in enumerate(arrays):
        name = what.format(rank)
        check_array(array, name)
        if array.ndim != 1:
            raise ValueError(f"{name} has shape {array.shape}; give 1-D arrays: x.ravel()")
        if array.dtype != arrays[0].dtype:
            raise ValueError(
                f"{name} is of {array.dtype}, {what.format(0)} of {arrays[0].dtype}; "
                "dtypes must be equal"
            )


def check_summands(n: int, arrays: Sequence[Array]) -> None:
    """Raises a `ValueError` unless these are n 1-D arrays of numbers, of one dtype and length."""
    check_pieces(n, arrays)
    for rank, array in enumerate(arrays):
        if not np.issubdtype(array.dtype, np.number):
            raise ValueError(f"the array of rank {rank} is of {array.dtype}; sums need numbers")
        if len(array) != len(arrays[0]):
            raise ValueError(
                f"the array of rank {rank} has {len(array)} elements, that of rank 0 "
                f"{len(arrays[0])}; lengths must be equal"
            )


def cut(length: int, parts: int) -> list[slice]:
    """Cuts `length` elements into blocks as equal as can be; the longer ones come first.

    So the longest has ⌈length/parts⌉ elements; with fewer elements than parts some are empty.
    """
    size, longer = divmod(length, parts)
    starts = [i * size + min(i, longer) for i in range(parts + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(starts)]
