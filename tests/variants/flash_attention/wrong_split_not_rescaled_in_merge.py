"""The merge kernel adds the parts up as if all had the same maximum.

breaks: 11
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_of(ptr, start, N, stride, d: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows, cols = start + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    mask = (rows < N)[:, None] & (cols < d)[None, :]
    return tl.load(ptr + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0)


@triton.jit
def split_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr, acc_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    G, Nq, Nk, scale, n_split,
    d: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
    Bc: tl.constexpr,
):  # fmt: skip
    part, head = tl.program_id(0), tl.program_id(1)  # head: b · G + g
    b, g = head // G, head % G
    row, dims = tl.arange(0, ROWS), tl.arange(0, WIDTH)  # row: (h within the group) · Nq + i
    mask = (row < GROUP * Nq)[:, None] & (dims < d)[None, :]
    at = b * q_stride_b + (g * GROUP + row // Nq) * q_stride_h + row % Nq * q_stride_n
    q = tl.load(q_ptr + at[:, None] + dims[None, :], mask=mask, other=0.0)  # (ROWS, WIDTH)

    begin, end = Nk * part // n_split, Nk * (part + 1) // n_split
    m = tl.full((ROWS,), float("-inf"), tl.float32)
    l = tl.zeros((ROWS,), tl.float32)  # noqa: E741
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    for j in range(begin, end, Bc):
        k = rows_of(k_ptr + b * k_stride_b + g * k_stride_h, j, end, k_stride_n, d, Bc, WIDTH)
        v = rows_of(v_ptr + b * v_stride_b + g * v_stride_h, j, end, v_stride_n, d, Bc, WIDTH)
        s = tl.dot(q, k.T, input_precision="ieee") * scale  # (ROWS, Bc)
        s = tl.where(j + tl.arange(0, Bc)[None, :] < end, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        l = l * tl.exp(m - m_new) + tl.sum(p, axis=1)  # noqa: E741
        acc = acc * tl.exp(m - m_new)[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new

    out = (head * GROUP * Nq + row) * n_split + part
    tl.store(m_ptr + out, m, mask=row < GROUP * Nq)
    tl.store(l_ptr + out, l, mask=row < GROUP * Nq)
    tl.store(acc_ptr + out[:, None] * d + dims[None, :], acc, mask=mask)


@triton.jit
def merge_kernel(
    m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, n_split,
    d: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    row, dims = tl.program_id(0), tl.arange(0, WIDTH)
    parts = row * n_split + tl.arange(0, PARTS)
    there = tl.arange(0, PARTS) < n_split
    mask = there[:, None] & (dims < d)[None, :]
    m = tl.load(m_ptr + parts, mask=there, other=float("-inf"))
    l = tl.load(l_ptr + parts, mask=there, other=0.0)  # noqa: E741
    acc = tl.load(acc_ptr + parts[:, None] * d + dims[None, :], mask=mask, other=0.0)
    top = tl.max(m, axis=0)
    total = tl.sum(l, axis=0)
    # wrong: exp(m − top) is missing in both sums
    o = tl.sum(acc, axis=0) / tl.where(total == 0.0, 1.0, total)
    tl.store(o_ptr + row * d + dims, o, mask=dims < d)
    tl.store(lse_ptr + row, top + tl.log(total))


def attention_decode(q, k, v, n_split, scale=None):
    check_arguments(q, k, v, scale=scale)
    if n_split < 1:
        raise ValueError(f"n_split must be at least 1, but is {n_split}")
    (B, H, Nq, d), (G, Nk) = q.shape, k.shape[1:3]
    o = torch.empty((B, H, Nq, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Nq), dtype=torch.float32, device=q.device)
    m, l = (torch.empty((B * H * Nq, n_split), device=q.device) for _ in range(2))  # noqa: E741
    acc = torch.empty((B * H * Nq, n_split, d), dtype=torch.float32, device=q.device)
    width = max(16, triton.next_power_of_2(d))
    split_kernel[(n_split, B * G)](
        q, k, v, m, l, acc, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        G, Nq, Nk, d**-0.5 if scale is None else scale, n_split,
        d=d, WIDTH=width, GROUP=H // G, ROWS=max(16, triton.next_power_of_2(H // G * Nq)), Bc=32,
    )  # fmt: skip
    parts = triton.next_power_of_2(n_split)
    merge_kernel[(B * H * Nq,)](m, l, acc, o, lse, n_split, d, width, parts)
    return o, lse
