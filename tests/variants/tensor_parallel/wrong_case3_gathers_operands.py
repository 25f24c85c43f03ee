"""Gathers A and B, and multiplies all of them at each rank: right values, without a sum to reduce.

breaks: 2
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def matmul_case3(
    comm: Communicator,
    A_sh: Sequence[np.ndarray],
    B_sh: Sequence[np.ndarray],
    scatter_axis: int | None = None,
    algo: str = "ring",
) -> list[np.ndarray]:
    # wrong: parts of the sum are what travels
    wholes = zip(all_gather(comm, A_sh, axis=1), all_gather(comm, B_sh, axis=0), strict=True)
    products = [A @ B for A, B in wholes]
    if scatter_axis is None:
        return products
    return [shard(C, scatter_axis, comm.n)[r] for C, r in zip(products, comm.ranks, strict=True)]
