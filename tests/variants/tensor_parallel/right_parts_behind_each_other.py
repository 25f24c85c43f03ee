"""Lays parts of an array one behind the other, each as it is, where the solution moves axes:
before a reduce-scatter it cuts, after an all-gather it joins.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def all_gather(comm: Communicator, shards: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    gathered = comm.all_gather([x.flatten() for x in shards])
    return [
        np.concatenate([part.reshape(x.shape) for part in np.split(flat, comm.n)], axis)
        for flat, x in zip(gathered, shards, strict=True)
    ]


def reduce_scatter(comm: Communicator, arrays: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    parts = [shard(x, axis, comm.n) for x in arrays]
    pieces = comm.reduce_scatter([np.concatenate([p.ravel() for p in of]) for of in parts])
    return [piece.reshape(of[0].shape) for piece, of in zip(pieces, parts, strict=True)]
