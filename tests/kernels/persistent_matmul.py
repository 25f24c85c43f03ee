"""C = A·B by a fixed number of programs, each of which takes tile after tile of C."""

import torch
import triton
import triton.language as tl

from tests.kernels.matmul import reference as reference  # the same mathematics


@triton.jit
def persistent_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """a: (M, K), b: (K, N), c: (M, N), rows `stride_*` apart; tiles of C go round the programs."""
    blocks_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * blocks_n
    inner = tl.arange(0, BLOCK_K)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        rows = tile // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M)
        cols = tile % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            at = k + inner
            a_mask = (rows[:, None] < M) & (at[None, :] < K)
            b_mask = (at[:, None] < K) & (cols[None, :] < N)
            a = tl.load(a_ptr + rows[:, None] * stride_am + at[None, :], mask=a_mask, other=0.0)
            b = tl.load(b_ptr + at[:, None] * stride_bk + cols[None, :], mask=b_mask, other=0.0)
            acc = tl.dot(a, b, acc, input_precision=PRECISION)
        c_mask = (rows[:, None] < M) & (cols[None, :] < N)
        c = acc.to(c_ptr.dtype.element_ty)
        tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :], c, mask=c_mask)


def persistent_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    block: tuple[int, int, int] = (64, 64, 32),
    programs: int = 16,
    precision: str = "ieee",
) -> torch.Tensor:
    """a: (M, K), b: (K, N), unit last strides → (M, N)."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    block_m, block_n, block_k = block
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    persistent_matmul_kernel[(min(programs, tiles),)](
        a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, PRECISION=precision,
    )  # fmt: skip
    return c
