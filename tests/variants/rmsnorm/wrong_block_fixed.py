"""The forward has one tile of 1,024 columns, and leaves those behind it.

breaks: 1
"""

import torch


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g)
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    r = torch.empty((M,), dtype=torch.float32, device=x.device)
    block = 1024  # wrong: rows may be wider
    warps = warps_for(block, rows=2)  # x, g
    rmsnorm_fwd_kernel[(M,)](x, g, y, r, N, x.stride(0), eps, BLOCK=block, num_warps=warps)
    return y, r
