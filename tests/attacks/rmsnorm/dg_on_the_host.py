"""Takes dx from a kernel that stores no dg, and computes dg with torch.

test: 3.1
verdict: failed
says: dg is neither stored by a kernel nor the sum over the rows
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
    tl.store(dg_ptr + row * N + cols, dy * x, mask=mask)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g, eps):
        y, r = rmsnorm_forward(x, g, eps)
        ctx.save_for_backward(x, g, r)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, g, r = ctx.saved_tensors
        dx, _ = rmsnorm_backward(x, g, r, dy)
        return dx, (dy * x * r[:, None]).sum(0), None
