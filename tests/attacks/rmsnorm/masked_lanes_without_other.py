"""Sums lanes that its mask keeps out, and for which it names no `other`.

Triton leaves their contents open; here, and in practice on NVIDIA GPUs, they are zero.

test: 1.3
verdict: failed
says: masked-off lanes matter
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_fwd_kernel(x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, x * r * tl.load(g_ptr + cols, mask=mask), mask=mask)
    tl.store(r_ptr + row, r)
