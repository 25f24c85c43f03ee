"""The autograd function adds up dg_partial with a kernel of its own instead of with torch.

Its loads of dg_partial are counted, and are within task 3's budget, which has room for the sum.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_rows_kernel(parts_ptr, sum_ptr, K, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, K, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < K)[:, None] & (cols < N)[None, :]
        parts = tl.load(parts_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        total += tl.sum(parts, axis=0)
    tl.store(sum_ptr + cols, total, mask=cols < N)


def sum_rows(parts: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """(K, N) float32 → (N,) in `dtype`."""
    K, N = parts.shape
    total = torch.empty((N,), dtype=dtype, device=parts.device)
    block = min(triton.next_power_of_2(N), 64)
    sum_rows_kernel[(triton.cdiv(N, block),)](parts, total, K, N, ROWS=16, BLOCK=block)
    return total


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g, eps):
        g = g.contiguous()
        y, r = rmsnorm_forward(as_rows(x), g, eps)
        ctx.save_for_backward(x, g, r)
        return y.resize_(x.shape)

    @staticmethod
    def backward(ctx, dy):
        x, g, r = ctx.saved_tensors
        dx, dg_partial = rmsnorm_backward(as_rows(x), g, r, as_rows(dy))
        return dx.view(dy.shape), sum_rows(dg_partial, g.dtype), None
