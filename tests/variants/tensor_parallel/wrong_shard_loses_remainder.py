"""Cuts into parts of ⌊length/n⌋, and loses what is left behind the last rank's part.

breaks: 1
"""

import numpy as np


def shard(x: np.ndarray, axis: int, n: int) -> list[np.ndarray]:
    length = x.shape[axis]
    rows = length // n  # wrong: to be refused where n does not divide the length
    front = (slice(None),) * (axis % x.ndim)
    return [x[(*front, slice(r * rows, (r + 1) * rows))] for r in range(n)]
