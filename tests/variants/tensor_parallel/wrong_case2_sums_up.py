"""Multiplies the own columns of A with the own rows of B and sums up, where A was to be gathered:
C travels in its place.

breaks: 2
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def matmul_case2(comm: Communicator, A_sh: Sequence[np.ndarray], B: np.ndarray) -> list[np.ndarray]:
    rows = shard(B, 0, comm.n)
    partial = [a @ rows[r] for a, r in zip(A_sh, comm.ranks, strict=True)]
    return all_reduce(comm, partial)  # wrong: A is what travels
