"""Takes axis 0 for no axis, and reduces C to all ranks.

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
    if not scatter_axis:  # wrong: 0 is an axis
        return all_reduce(comm, partial, algo)
    return reduce_scatter(comm, partial, scatter_axis)
