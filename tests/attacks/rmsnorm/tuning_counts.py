"""Has Triton time the kernel in two ways (`autotune`): launches that are only timed count, too.

The judge cannot believe a submission about which of its launches were meant.

test: 1.6
verdict: failed
says: over the budget
"""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (1, 2)], key=["N"])
@triton.jit
def rmsnorm_fwd_kernel(x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, x * r * g, mask=mask)
    tl.store(r_ptr + row, r)


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    y, r = torch.empty(x.shape, dtype=x.dtype), torch.empty(len(x))
    block = triton.next_power_of_2(x.shape[1])
    rmsnorm_fwd_kernel[(len(x),)](x, g, y, r, x.shape[1], x.stride(0), eps, BLOCK=block)
    return y, r
