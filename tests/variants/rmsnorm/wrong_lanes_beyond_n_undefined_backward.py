"""The backward's load of dy has no `other`: on a GPU, the lanes from N on join the mean.

breaks: 2, 3
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_bwd_kernel(
    x_ptr, g_ptr, r_ptr, dy_ptr, dx_ptr, dg_ptr, N, x_stride, dy_stride, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + cols, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    dy = tl.load(dy_ptr + row * dy_stride + cols, mask=mask).to(tl.float32)  # wrong: NaN · 0 is NaN
    r = tl.load(r_ptr + row)

    xhat = x * r
    w = g * dy
    dx = r * (w - xhat * (tl.sum(w * xhat, axis=0) / N))

    tl.store(dx_ptr + row * N + cols, dx, mask=mask)
    tl.store(dg_ptr + row * N + cols, dy * xhat, mask=mask)
