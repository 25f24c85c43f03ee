"""The sum with labels of all kinds and prints: the control for all that is tried here.

test: 1.1
verdict: passed
"""

import numpy as np
from spmd import Communicator


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    print("summing", len(shards))
    return comm.all_reduce(shards, label="\x1b[2J" + "x" * 1000)
