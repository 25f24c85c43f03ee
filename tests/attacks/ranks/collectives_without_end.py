"""Calls collectives for ever: the log of them may not grow without bound.

test: 1.2
verdict: timed out
says: total
"""

import numpy as np
from spmd import Communicator


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    while True:
        comm.all_reduce(shards)
