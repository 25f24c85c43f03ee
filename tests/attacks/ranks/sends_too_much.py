"""Gathers all shards and sums them on every rank, with the same number of calls in mind.

test: 1.1
verdict: failed
says: total sends 288 B from rank 0, over the budget of
"""

import numpy as np
from spmd import Communicator


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    return [comm.all_gather(shards, label="whole shards")[0].reshape(comm.n, -1).sum(0)]
