"""The forward returns y in float32, whatever x is.

breaks: 1, 3
"""

import torch
import triton


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g)
    M, N = x.shape
    y = torch.empty((M, N), dtype=torch.float32, device=x.device)  # wrong: x's dtype
    r = torch.empty((M,), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(N)
    warps = warps_for(block, rows=2)  # x, g
    rmsnorm_fwd_kernel[(M,)](x, g, y, r, N, x.stride(0), eps, BLOCK=block, num_warps=warps)
    return y, r
