"""The forward computes with torch operations, and no kernel, so that task 3 has none either.

breaks: 1, 3
"""

import torch


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g)
    wide = x.float()
    r = torch.rsqrt(wide.square().mean(dim=1) + eps)
    return (wide * r[:, None] * g).to(x.dtype), r
