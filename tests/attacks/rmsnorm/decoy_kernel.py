"""Computes with torch, and launches a kernel that stores a zero into scratch memory.

test: 1.2
verdict: failed
says: y was stored by no kernel
"""

import torch
import triton
import triton.language as tl


@triton.jit
def decoy_kernel(scratch_ptr):
    tl.store(scratch_ptr, 0.0)


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x.float()
    r = torch.rsqrt(wide.square().mean(dim=1) + eps)
    y = (wide * r[:, None] * g).to(x.dtype)
    decoy_kernel[(1,)](torch.empty(1))
    return y, r
