"""Program i continues the sum that program i − 1 has stored: right only if they run in order.

test: 2.2
verdict: failed
says: race: dg_ptr
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_bwd_kernel(
    x_ptr, g_ptr, r_ptr, dy_ptr, dx_ptr, dg_ptr, N, x_stride, dy_stride, BLOCK: tl.constexpr
):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0)
    g = tl.load(g_ptr + cols, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * dy_stride + cols, mask=mask, other=0.0)
    r = tl.load(r_ptr + row)
    w = g * dy
    dx = r * (w - x * r * (tl.sum(w * x * r, axis=0) / N))
    tl.store(dx_ptr + row * N + cols, dx, mask=mask)
    before = tl.load(dg_ptr + row * N + cols, mask=mask, other=0.0)
    tl.store(dg_ptr + (row + 1) * N + cols, before + dy * x * r, mask=mask)


def rmsnorm_backward(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    dx, sums = torch.empty_like(x), torch.zeros(M + 1, N)
    block = triton.next_power_of_2(N)
    rmsnorm_bwd_kernel[(M,)](x, g, r, dy, dx, sums, N, x.stride(0), dy.stride(0), BLOCK=block)
    return dx, sums[M:]
