"""One launch a row, with the row's offset and 1 / N as scalar arguments.

test: 1.2
verdict: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, g_ptr, y_ptr, r_ptr, row, N, one_by_n, x_stride, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) * one_by_n + eps)
    tl.store(y_ptr + row * N + cols, x * r * tl.load(g_ptr + cols, mask=mask), mask=mask)
    tl.store(r_ptr + row, r)


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    y, r = torch.empty(x.shape, dtype=x.dtype), torch.empty(M)
    block = triton.next_power_of_2(N)
    for row in range(M):
        row_kernel[(1,)](x, g, y, r, row, N, 1 / N, x.stride(0), eps, BLOCK=block)
    return y, r
