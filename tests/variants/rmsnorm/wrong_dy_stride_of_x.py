"""The backward steps through dy with the row stride of x.

breaks: 2, 3
"""

import torch
import triton


def rmsnorm_backward(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g, r, dy)
    M, N = x.shape
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    dg_partial = torch.empty((M, N), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(N)
    warps = warps_for(block, rows=3)  # x, g, dy
    # wrong: dy has a stride of its own
    rmsnorm_bwd_kernel[(M,)](
        x, g, r, dy, dx, dg_partial, N, x.stride(0), x.stride(0), BLOCK=block, num_warps=warps
    )
    return dx, dg_partial
