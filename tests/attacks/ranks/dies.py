"""Rank 2 ends its process while others wait for it.

test: 1.2
verdict: crashed
says: rank 2: the student's process ended in total: exit code 3; a submission must return
"""

import os

import numpy as np
from spmd import Communicator


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    if comm.ranks == (2,):
        os._exit(3)
    return comm.all_reduce(shards)
