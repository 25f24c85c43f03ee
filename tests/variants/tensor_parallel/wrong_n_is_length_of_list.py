"""Takes the length of a list for the number of ranks, which holds in the simulation alone.

breaks: 1, 2, 4, 5, 6, 7
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def all_gather(comm: Communicator, shards: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    check_held(comm, shards=shards)
    fronts = [x.swapaxes(0, axis) for x in shards]
    gathered = comm.all_gather([front.reshape(-1) for front in fronts])
    return [
        flat.reshape(len(shards) * front.shape[0], *front.shape[1:]).swapaxes(0, axis)
        # wrong: comm.n
        for flat, front in zip(gathered, fronts, strict=True)
    ]
