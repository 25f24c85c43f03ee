"""The four products by einsum; the third scatters the columns of its product by hand, and
multiplies block by block.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def matmul_case1(A_sh: Sequence[np.ndarray], B: np.ndarray) -> list[np.ndarray]:
    return [np.einsum("ij,jk->ik", a, B) for a in A_sh]


def matmul_case2(comm: Communicator, A_sh: Sequence[np.ndarray], B: np.ndarray) -> list[np.ndarray]:
    # Gathered as rows of Aᵀ, where parts lie one behind the other.
    transposed = all_gather(comm, [a.T for a in A_sh], 0)
    return [np.einsum("ji,jk->ik", At, B) for At in transposed]


def matmul_case3(
    comm: Communicator,
    A_sh: Sequence[np.ndarray],
    B_sh: Sequence[np.ndarray],
    scatter_axis: int | None = None,
    algo: str = "ring",
) -> list[np.ndarray]:
    partial = []
    for a, b in zip(A_sh, B_sh, strict=True):
        total = np.zeros((a.shape[0], b.shape[1]), dtype=np.result_type(a, b))
        for j in range(a.shape[1]):
            total += np.outer(a[:, j], b[j])
        partial.append(total)
    if scatter_axis is None:
        sums = comm.all_reduce([C.ravel() for C in partial], algo=algo)
        return [s.reshape(C.shape) for s, C in zip(sums, partial, strict=True)]
    if scatter_axis in (1, -1):
        return [c.T for c in reduce_scatter(comm, [C.T for C in partial], 0)]
    return reduce_scatter(comm, partial, 0)


def matmul_case4(
    comm: Communicator, A_sh: Sequence[np.ndarray], B_sh: Sequence[np.ndarray]
) -> list[np.ndarray]:
    # One block of columns after the other, instead of the whole B at once.
    gathered = all_gather(comm, [b[None] for b in B_sh], 0)  # (n, J, K/n)
    return [
        np.concatenate([a @ b for b in blocks], axis=1)
        for a, blocks in zip(A_sh, gathered, strict=True)
    ]
