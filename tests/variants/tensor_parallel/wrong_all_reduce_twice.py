"""Sends an all-reduce as a reduce-scatter and an all-gather of its own, whatever algorithm is
asked for: as many bytes as a ring, but twice as many collectives.

breaks: 1, 2, 4, 5, 7
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def all_reduce(
    comm: Communicator, arrays: Sequence[np.ndarray], algo: str = "ring"
) -> list[np.ndarray]:
    check_held(comm, arrays=arrays)
    flat = [np.pad(x.reshape(-1), (0, -x.size % comm.n)) for x in arrays]
    sums = all_gather(comm, reduce_scatter(comm, flat, axis=0), axis=0)  # wrong: two for one
    return [total[: x.size].reshape(x.shape) for total, x in zip(sums, arrays, strict=True)]
