"""The forward sums squares in float16, where 256² is infinite.

breaks: 1, 3
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_fwd_kernel(x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row · stride may pass 2³¹
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    g = tl.load(g_ptr + cols, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)

    # Masked lanes hold 0 and add nothing to the sum; the mean still divides by N, not by BLOCK.
    squares = (x * x).to(tl.float16)  # wrong: squares and their sum belong in float32
    r = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)

    tl.store(y_ptr + row * N + cols, x * r * g, mask=mask)  # rounded once, to y's dtype
    tl.store(r_ptr + row, r)
