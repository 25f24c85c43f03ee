"""Adds to one dg without atomics, in programs that a lock of their own makes run in turn here.

Programs that wait for each other are run one after the other, which hides the race: on a GPU the
lock, one a program, would keep nobody out.

test: 2.2
verdict: failed
says: race: dg_ptr
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_bwd_kernel(
    x_ptr, g_ptr, r_ptr, dy_ptr, dx_ptr, dg_ptr, locks, N, x_stride, dy_stride, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0)
    g = tl.load(g_ptr + cols, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * dy_stride + cols, mask=mask, other=0.0)
    r = tl.load(r_ptr + row)
    w = g * dy
    dx = r * (w - x * r * (tl.sum(w * x * r, axis=0) / N))
    tl.store(dx_ptr + row * N + cols, dx, mask=mask)
    while tl.atomic_cas(locks + row, 0, 1) == 1:
        pass
    dg = tl.load(dg_ptr + cols, mask=mask, other=0.0)
    tl.store(dg_ptr + cols, dg + dy * x * r, mask=mask)


def rmsnorm_backward(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    dx, dg_partial = torch.empty_like(x), torch.zeros(1, N)
    locks = torch.zeros(M, dtype=torch.int32)
    rmsnorm_bwd_kernel[(M,)](
        x,
        g,
        r,
        dy,
        dx,
        dg_partial,
        locks,
        N,
        x.stride(0),
        dy.stride(0),
        BLOCK=triton.next_power_of_2(N),
    )
    return dx, dg_partial
