"""The backward adds every row's share of dg into one row, atomically.

dg_partial has K = 1 row. The order of the additions is not determined, nor is dg's last bit.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_bwd_kernel(
    x_ptr, g_ptr, r_ptr, dy_ptr, dx_ptr, dg_ptr, N, x_stride, dy_stride, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    g = tl.load(g_ptr + cols, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    dy = tl.load(dy_ptr + row * dy_stride + cols, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    r = tl.load(r_ptr + row)

    xhat = x * r
    w = g * dy
    dx = r * (w - xhat * (tl.sum(w * xhat, axis=0) / N))

    tl.store(dx_ptr + row * N + cols, dx, mask=mask)
    tl.atomic_add(dg_ptr + cols, dy * xhat, mask=mask)


def rmsnorm_backward(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g, r, dy)
    M, N = x.shape
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    dg_partial = torch.zeros((1, N), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(N)
    warps = warps_for(block, rows=3)  # x, g, dy
    rmsnorm_bwd_kernel[(M,)](
        x, g, r, dy, dx, dg_partial, N, x.stride(0), dy.stride(0), BLOCK=block, num_warps=warps
    )
    return dx, dg_partial
