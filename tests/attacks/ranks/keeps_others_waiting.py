"""Rank 3 returns without the collective that others wait in.

test: 1.2
verdict: failed
says: ranks 0, 1 and 2 wait in all_reduce of 12 float64 (call 1), rank 3 has returned from total
"""

import numpy as np
from spmd import Communicator


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    return shards if comm.ranks == (3,) else comm.all_reduce(shards)
