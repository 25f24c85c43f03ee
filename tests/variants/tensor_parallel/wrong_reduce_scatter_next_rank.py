"""Leaves rank r part r + 1 of the sum, as a ring does if nobody turns it back.

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
    # wrong: blocks are one place off
    pieces = comm.reduce_scatter(
        [np.roll(front.reshape(-1), -(front.size // comm.n)) for front in fronts]
    )
    return [
        piece.reshape(len(front) // comm.n, *front.shape[1:]).swapaxes(0, axis)
        for piece, front in zip(pieces, fronts, strict=True)
    ]
