"""All-reduces are rings, whatever algorithm is asked for.

breaks: 1, 2, 4
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def all_reduce(
    comm: Communicator, arrays: Sequence[np.ndarray], algo: str = "ring"
) -> list[np.ndarray]:
    check_held(comm, arrays=arrays)
    sums = comm.all_reduce([x.reshape(-1) for x in arrays])  # wrong: algo
    return [total.reshape(x.shape) for total, x in zip(sums, arrays, strict=True)]
