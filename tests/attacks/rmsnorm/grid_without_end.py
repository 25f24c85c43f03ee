"""A grid of 2³⁰ programs.

test: 1.2
verdict: timed out
says: in kernel idle_kernel, grid (1073741824, 1, 1)
seconds: 2
"""

import torch
import triton
import triton.language as tl


@triton.jit
def idle_kernel(x_ptr, to_ptr):
    tl.store(to_ptr, tl.load(x_ptr) * tl.program_id(0))


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    r = torch.empty(len(x))
    idle_kernel[(1 << 30,)](x, r)
    return x, r
