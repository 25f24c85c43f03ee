"""Cuts a length that n does not divide into parts of different lengths, as np.array_split does.

breaks: 1
"""

import numpy as np


def shard(x: np.ndarray, axis: int, n: int) -> list[np.ndarray]:
    return np.array_split(x, n, axis)  # wrong: to be refused where n does not divide the length
