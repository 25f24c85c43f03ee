"""Computes r in one kernel and y in another, which loads what the first has stored.

test: 1.2
verdict: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def inverse_rms_kernel(x_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(r_ptr + row, tl.rsqrt(tl.sum(x * x, axis=0) / N + eps))


@triton.jit
def scale_kernel(x_ptr, g_ptr, r_ptr, y_ptr, N, x_stride, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask)
    g = tl.load(g_ptr + cols, mask=mask)
    tl.store(y_ptr + row * N + cols, x * g * tl.load(r_ptr + row), mask=mask)


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    y, r = torch.empty(x.shape, dtype=x.dtype), torch.zeros(M)
    block = triton.next_power_of_2(N)
    inverse_rms_kernel[(M,)](x, r, N, x.stride(0), eps, BLOCK=block)
    scale_kernel[(M,)](x, g, r, y, N, x.stride(0), BLOCK=block)
    return y, r
