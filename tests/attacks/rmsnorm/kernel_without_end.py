"""A kernel of 10¹² steps, which run in the judge's process, not in the student's.

test: 1.2
verdict: timed out
says: in kernel rmsnorm_fwd_kernel, grid (64, 1, 1)
seconds: 2
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_fwd_kernel(x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    r = 0.0
    for _i in range(N * 7_812_500):
        for _j in range(1000):
            r += tl.load(x_ptr + row * x_stride)
    tl.store(r_ptr + row, r)
