"""Cuts axis 0 where a negative axis is meant.

breaks: 1
"""

import numpy as np


def shard(x: np.ndarray, axis: int, n: int) -> list[np.ndarray]:
    length = x.shape[axis]
    if n < 1 or length % n:
        raise ValueError(f"axis {axis} has length {length}; it cannot be cut into {n} equal parts")
    rows = length // n
    front = (slice(None),) * axis  # wrong: for a negative number this is ()
    return [x[(*front, slice(r * rows, (r + 1) * rows))] for r in range(n)]
