"""A program without a row clears a row of dg_partial that another program stores.

Which of the two comes last is a matter of chance; here it is the one that stores.

breaks: 4
"""

import triton
import triton.language as tl


@triton.jit
def rmsnorm_bwd_persistent_kernel(
    x_ptr, g_ptr, r_ptr, dy_ptr, dx_ptr, dg_ptr, M, N, x_stride, dy_stride, BLOCK: tl.constexpr
):
    program = (tl.num_programs(0) - 1 - tl.program_id(0)).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    g = tl.load(g_ptr + cols, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    dg = tl.zeros((BLOCK,), dtype=tl.float32)

    for row in range(program, M, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * dy_stride + cols, mask=mask, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row)

        xhat = x * r
        w = g * dy
        dx = r * (w - xhat * (tl.sum(w * xhat, axis=0) / N))
        dg += dy * xhat

        tl.store(dx_ptr + row * N + cols, dx, mask=mask)

    tl.store(dg_ptr + program * N + cols, dg, mask=mask)
    if program >= M:  # wrong: that row is not its own
        tl.store(dg_ptr + (program - M) * N + cols, dg, mask=mask)
