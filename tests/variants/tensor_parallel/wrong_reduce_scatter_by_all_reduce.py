"""Reduces to all ranks, and then cuts the own part out: right values for twice the bytes.

breaks: 1, 2, 6
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def reduce_scatter(comm: Communicator, arrays: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    sums = all_reduce(comm, arrays)  # wrong: a reduce-scatter was asked for
    return [shard(total, axis, comm.n)[r] for total, r in zip(sums, comm.ranks, strict=True)]
