"""Pads a length that n does not divide with zeros, silently, so that all parts are equally long.

breaks: 1
"""

import numpy as np


def shard(x: np.ndarray, axis: int, n: int) -> list[np.ndarray]:
    length = x.shape[axis]
    rows = -(-length // n)
    missing = [(0, 0)] * x.ndim
    missing[axis] = (0, rows * n - length)
    x = np.pad(x, missing)  # wrong: to be refused
    front = (slice(None),) * (axis % x.ndim)
    return [x[(*front, slice(r * rows, (r + 1) * rows))] for r in range(n)]
