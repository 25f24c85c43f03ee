"""The forward's load of x has no `other`: on a GPU, the lanes from N on join the sum with anything.

breaks: 1, 3
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_fwd_kernel(x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask).to(tl.float32)  # wrong: no other
    g = tl.load(g_ptr + cols, mask=mask).to(tl.float32)  # fine: these lanes are not stored

    r = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)

    tl.store(y_ptr + row * N + cols, x * r * g, mask=mask)
    tl.store(r_ptr + row, r)
