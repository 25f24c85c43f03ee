"""A kernel that holds many tiles of 2²⁰ numbers at a time, in the judge's process.

test: 1.2
verdict: failed
says: the tiles of a single program take
"""

import torch
import triton
import triton.language as tl


@triton.jit
def hoard_kernel(x_ptr, to_ptr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    hoard = ()
    for i in tl.static_range(COUNT):
        hoard = hoard + (tl.load(x_ptr + i) * at,)  # noqa: RUF005 (Triton knows no star)
    for i in tl.static_range(COUNT):
        tl.store(to_ptr + at, hoard[i])


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    hoard_kernel[(1,)](x, torch.empty(1 << 20), COUNT=200, BLOCK=1 << 20)
    return x, x
