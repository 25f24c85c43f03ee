"""The forward takes N for the distance between rows of x.

breaks: 1, 3
"""

import torch
import triton


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g)
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    r = torch.empty((M,), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(N)
    warps = warps_for(block, rows=2)  # x, g
    # wrong: rows of a slice are further apart than N, those of an expanded row not at all
    rmsnorm_fwd_kernel[(M,)](x, g, y, r, N, N, eps, BLOCK=block, num_warps=warps)
    return y, r
