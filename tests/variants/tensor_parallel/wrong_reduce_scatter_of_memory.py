"""Scatters the blocks of the array as it lies in memory, which are parts along axis 0 only.

breaks: 1, 2, 6
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def reduce_scatter(comm: Communicator, arrays: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    check_held(comm, arrays=arrays)
    fronts = [x.swapaxes(0, axis) for x in arrays]
    for front in fronts:
        if len(front) % comm.n:
            raise ValueError(
                f"axis {axis} has length {len(front)}; it cannot be scattered to {comm.n} ranks"
            )
    pieces = comm.reduce_scatter([x.reshape(-1) for x in arrays])  # wrong: the fronts
    return [
        piece.reshape(len(front) // comm.n, *front.shape[1:]).swapaxes(0, axis)
        for piece, front in zip(pieces, fronts, strict=True)
    ]
