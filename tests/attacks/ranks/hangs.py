"""Rank 1 never comes to the collective that others wait in.

test: 1.2
verdict: timed out
says: no result after 3 s, in total on rank 1, while ranks 0, 2 and 3 wait in all_reduce
seconds: 3
"""

import numpy as np
from spmd import Communicator


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    while comm.ranks == (1,):
        pass
    return comm.all_reduce(shards)
