"""Asks for few bytes by doing nothing: bytes of a wrong answer must earn no points.

test: 1.6
verdict: failed
says: r is wrong
"""

import torch
import triton


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    y, r = torch.empty(x.shape, dtype=x.dtype), torch.empty(len(x))
    block = triton.next_power_of_2(x.shape[1])
    rmsnorm_fwd_kernel[(0,)](x, g, y, r, x.shape[1], x.stride(0), eps, BLOCK=block)
    return y, r
