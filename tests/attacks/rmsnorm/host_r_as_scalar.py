"""Computes r with torch, and passes it to a kernel as a number, one launch a row.

test: 1.2
verdict: failed
says: do not compute its result from its inputs
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_row_kernel(x_ptr, g_ptr, y_ptr, r_ptr, r, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    y = tl.load(x_ptr + cols, mask=mask) * tl.load(g_ptr + cols, mask=mask) * r
    tl.store(y_ptr + cols, y, mask=mask)
    tl.store(r_ptr, r)


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    y, r = torch.empty(M, N), torch.empty(M)
    for row, value in enumerate(torch.rsqrt(x.square().mean(dim=1) + eps).tolist()):
        block = triton.next_power_of_2(N)
        scale_row_kernel[(1,)](x[row], g, y[row], r[row:], value, N, BLOCK=block)
    return y, r
