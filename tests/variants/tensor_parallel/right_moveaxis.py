"""Cuts with np.split, and brings axes to the front with moveaxis, which leaves the others in
order.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def shard(x: np.ndarray, axis: int, n: int) -> list[np.ndarray]:
    if n < 1 or x.shape[axis] % n != 0:
        raise ValueError(f"cannot cut axis {axis}, {x.shape[axis]} long, into {n} equal parts")
    return np.split(x, n, axis=axis)


def all_gather(comm: Communicator, shards: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    fronts = [np.moveaxis(x, axis, 0) for x in shards]
    gathered = comm.all_gather([np.ascontiguousarray(front).ravel() for front in fronts])
    return [
        np.moveaxis(flat.reshape((-1, *front.shape[1:])), 0, axis)
        for flat, front in zip(gathered, fronts, strict=True)
    ]


def reduce_scatter(comm: Communicator, arrays: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    for x in arrays:
        if x.shape[axis] % comm.n:
            raise ValueError(f"axis {axis}, {x.shape[axis]} long, is not for {comm.n} ranks")
    fronts = [np.moveaxis(x, axis, 0) for x in arrays]
    pieces = comm.reduce_scatter([front.ravel() for front in fronts])
    return [
        np.moveaxis(piece.reshape((-1, *front.shape[1:])), 0, axis)
        for piece, front in zip(pieces, fronts, strict=True)
    ]
