"""Joins the parts that this process holds, which in the simulation are all, and sends nothing.

breaks: 1, 2, 4, 5, 6, 7
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def all_gather(comm: Communicator, shards: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    check_held(comm, shards=shards)
    return [unshard(shards, axis) for _ in shards]  # wrong: other processes hold parts as well
