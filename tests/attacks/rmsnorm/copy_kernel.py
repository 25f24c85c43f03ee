"""Computes with torch, and has a kernel copy the result, so that a kernel has stored it.

test: 1.2
verdict: failed
says: from_ptr of copy_kernel (launch 1 of the call) holds numbers that are neither
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(from_ptr, to_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to_ptr + at, tl.load(from_ptr + at, mask=at < n), mask=at < n)


def copied(t: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(t)
    copy_kernel[(triton.cdiv(t.numel(), 64),)](t, result, t.numel(), BLOCK=64)
    return result


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x.float()
    r = torch.rsqrt(wide.square().mean(dim=1) + eps)
    y = (wide * r[:, None] * g).to(x.dtype)
    return copied(y), copied(r)
