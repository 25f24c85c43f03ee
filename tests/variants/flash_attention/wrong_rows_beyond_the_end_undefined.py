"""Rows and columns beyond a matrix are undefined on a GPU: 0 · NaN is NaN in every product.

breaks: 9, 10, 11, 12
file: flash_triton.py
"""

import triton
import triton.language as tl


@triton.jit
def load_rows(
    source, start, N, stride, d: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr,
    TMA: tl.constexpr,
):  # fmt: skip
    if TMA:
        return source.load([start, 0])
    else:
        rows, cols = tl.arange(0, ROWS), tl.arange(0, BLOCK_D)
        mask = (rows < N - start)[:, None] & (cols < d)[None, :]
        first = source + tl.cast(start, tl.int64) * stride  # start · stride may pass 2³¹
        return tl.load(first + rows[:, None] * stride + cols[None, :], mask=mask)  # wrong: no other
