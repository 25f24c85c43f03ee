"""The forward lays a row out as a two-dimensional tile of 64 columns, and sums it axis by axis.

Each element of x is still loaded once.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_fwd_kernel(
    x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, TILES: tl.constexpr, TILE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, TILES)[:, None] * TILE + tl.arange(0, TILE)[None, :]  # (TILES, TILE)
    mask = cols < N
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = 1.0 / tl.sqrt(tl.sum(tl.sum(x * x, axis=1), axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, x * r * g, mask=mask)
    tl.store(r_ptr + row, r)


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(x, g)
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    r = torch.empty((M,), dtype=torch.float32, device=x.device)
    tiles = triton.next_power_of_2(triton.cdiv(N, 64))
    rmsnorm_fwd_kernel[(M,)](x, g, y, r, N, x.stride(0), eps, TILES=tiles, TILE=64)
    return y, r
