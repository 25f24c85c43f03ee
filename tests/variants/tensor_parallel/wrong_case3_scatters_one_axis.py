"""Scatters along axis 0, whichever of C's axes was asked for.

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
    partial = [a @ b for a, b in zip(A_sh, B_sh, strict=True)]
    if scatter_axis is None:
        return all_reduce(comm, partial, algo)
    return reduce_scatter(comm, partial, 0)  # wrong: scatter_axis
