"""The forward goes over x twice, in tiles: right numbers, at M·N more loads.

breaks: 1
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_fwd_kernel(x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row · stride may pass 2³¹
    cols = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        mask = start + cols < N
        x = tl.load(x_ptr + row * x_stride + start + cols, mask=mask, other=0.0).to(tl.float32)
        squares += x * x
    r = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)

    for start in range(0, N, BLOCK):
        mask = start + cols < N
        # wrong: a second load of what was there a moment ago
        x = tl.load(x_ptr + row * x_stride + start + cols, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(g_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + start + cols, x * r * g, mask=mask)
    tl.store(r_ptr + row, r)


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g)
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    r = torch.empty((M,), dtype=torch.float32, device=x.device)
    block = min(triton.next_power_of_2(N), 1024)
    warps = warps_for(block, rows=2)  # x, g
    rmsnorm_fwd_kernel[(M,)](x, g, y, r, N, x.stride(0), eps, BLOCK=block, num_warps=warps)
    return y, r
