"""Computes the own block of the diagonal and gathers these along the columns, as if a rank's rows
had been multiplied with all columns of B.

breaks: 2
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def matmul_case4(
    comm: Communicator, A_sh: Sequence[np.ndarray], B_sh: Sequence[np.ndarray]
) -> list[np.ndarray]:
    blocks = [a @ b for a, b in zip(A_sh, B_sh, strict=True)]
    return all_gather(comm, blocks, axis=1)  # wrong: block (r, s) was never computed
