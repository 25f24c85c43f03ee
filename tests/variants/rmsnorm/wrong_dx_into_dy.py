"""The backward writes dx over dy, which belongs to the caller.

breaks: 2, 3
"""

import torch
import triton


def rmsnorm_backward(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g, r, dy)
    M, N = x.shape
    dx = dy  # wrong: changes the caller's tensor
    dg_partial = torch.empty((M, N), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(N)
    warps = warps_for(block, rows=3)  # x, g, dy
    rmsnorm_bwd_kernel[(M,)](
        x, g, r, dy, dx, dg_partial, N, x.stride(0), dy.stride(0), BLOCK=block, num_warps=warps
    )
    return dx, dg_partial
