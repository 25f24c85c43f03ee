"""Numpy arrays and torch tensors, worked on by one text.

Functions of this package name operations as the array API standard does (`xp.concat`,
`xp.permute_dims`), and find them in the namespace of the arrays that they are given: numpy itself,
which has had the standard's names since 2.0, or for torch tensors array-api-compat. So torch is
never imported, unless its tensors come.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

#: A numpy array or a torch tensor. What the functions return is what they were given: of the same
#: library, dtype and device.
Array = Any

_NUMPY = (np.ndarray, np.generic, float, int)


def namespace(*arrays: Array) -> Any:
    """The module with the operations for these arrays.

    Raises:
        TypeError: they are of different libraries.
    """
    # Not array-api-compat's wrapper of numpy, which loads all of numpy's submodules: 100 ms, in
    # each process of each test.
    if all(isinstance(array, _NUMPY) for array in arrays):
        return np
    return array_namespace(*arrays)


def like(value: Array, array: Array) -> Array:
    """`value`, a numpy array, as one of the library, the dtype and the device of `array`."""
    xp = namespace(array)
    # Numpy promotes by itself, torch refuses: float32 · float64 is float64 there.
    return value if xp is np else xp.asarray(value, dtype=array.dtype, device=device(array))


def alike(a: Array, b: Array) -> bool:
    """Whether two arrays are of one library, dtype and device."""
    of_numpy = isinstance(a, np.ndarray), isinstance(b, np.ndarray)
    if any(of_numpy):
        return all(of_numpy) and bool(a.dtype == b.dtype)
    return bool(a.dtype == b.dtype and device(a) == device(b))


def kind(array: Array) -> str:
    """Library, dtype and device of an array, for messages: "numpy float64", "torch.float32 on
    cuda:0"."""
    if isinstance(array, np.ndarray):
        return f"numpy {array.dtype}"
    return f"{array.dtype} on {device(array)}"
