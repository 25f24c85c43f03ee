"""The forward keeps r in x's dtype, which costs bfloat16 all but 8 of its bits.

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
    r = torch.empty((M,), dtype=x.dtype, device=x.device)  # wrong: float32 always
    block = triton.next_power_of_2(N)
    warps = warps_for(block, rows=2)  # x, g
    rmsnorm_fwd_kernel[(M,)](x, g, y, r, N, x.stride(0), eps, BLOCK=block, num_warps=warps)
    return y, r
