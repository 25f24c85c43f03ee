"""Computes r, the only sum there is, with torch; a kernel multiplies by it.

test: 1.2
verdict: failed
says: r_ptr of scale_kernel holds numbers that are neither
"""

import torch
import triton
import triton.language as tl


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
    r = torch.rsqrt(x.float().square().mean(dim=1) + eps)
    y = torch.empty(x.shape, dtype=x.dtype)
    block = triton.next_power_of_2(x.shape[1])
    scale_kernel[(len(x),)](x, g, r, y, x.shape[1], x.stride(0), BLOCK=block)
    return y, r
