"""A part without keys stores nothing, and is told by what the memory held before.

breaks: 11
file: flash_triton.py
"""

import triton
import triton.language as tl


@triton.jit
def attention_split_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr, acc_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    G, Nq, Nk, scale, n_split,
    d: tl.constexpr, BLOCK_D: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(GROUP * Nq, ROWS)
    heads = tl.num_programs(0) // (n_split * tiles)  # B · G
    tile = tl.program_id(0) % tiles
    part = tl.program_id(0) // tiles % n_split
    head = (tl.program_id(0) // (tiles * n_split)).to(tl.int64)  # b · G + g
    b, g = head // G, head % G

    row = tile * ROWS + tl.arange(0, ROWS)  # of the group's GROUP · Nq queries, head by head
    cols = tl.arange(0, BLOCK_D)
    inside = row < GROUP * Nq
    mask = inside[:, None] & (cols < d)[None, :]
    h, i = g * GROUP + row // Nq, row % Nq
    at = b * q_stride_b + h * q_stride_h + i * q_stride_n  # (ROWS,)
    q = tl.load(q_ptr + at[:, None] + cols[None, :], mask=mask, other=0.0)  # (ROWS, BLOCK_D)

    share = tl.cdiv(Nk, n_split)
    end = tl.minimum((part + 1) * share, Nk)
    k_ptr += b * k_stride_b + g * k_stride_h
    v_ptr += b * v_stride_b + g * v_stride_h
    m = tl.full((ROWS,), LOWEST, tl.float32)
    l = tl.zeros((ROWS,), tl.float32)  # noqa: E741
    acc = tl.zeros((ROWS, BLOCK_D), tl.float32)
    for j in range(part * share, end, Bc):
        k = load_rows(k_ptr, j, end, k_stride_n, d, Bc, BLOCK_D, False)
        v = load_rows(v_ptr, j, end, v_stride_n, d, Bc, BLOCK_D, False)
        s = tl.dot(q, k.T, input_precision="ieee")  # (ROWS, Bc)
        s = tl.where((j + tl.arange(0, Bc))[None, :] < end, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1) * (scale * LOG2E))
        p = tl.exp2(s * (scale * LOG2E) - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(p, axis=1)  # noqa: E741
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        m = m_new

    out = (part * heads + head) * GROUP * Nq + row  # (part, b, h, i), of (n_split, B, H, Nq)
    if part * share < end:  # wrong: of a part without keys, m, l and acc hold anything
        tl.store(m_ptr + out, m, mask=inside)
        tl.store(l_ptr + out, l, mask=inside)
        tl.store(acc_ptr + out[:, None] * d + cols[None, :], acc, mask=mask)


@triton.jit
def attention_merge_kernel(
    m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, n_split, d: tl.constexpr, BLOCK_D: tl.constexpr
):  # fmt: skip
    row, rows = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    cols = tl.arange(0, BLOCK_D)
    m, l = LOWEST, 0.0  # noqa: E741
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for part in range(n_split):
        at = part * rows + row
        m_part, l_part = tl.load(m_ptr + at), tl.load(l_ptr + at)
        acc_part = tl.load(acc_ptr + at * d + cols, mask=cols < d, other=0.0)
        m_new = tl.maximum(m, m_part)
        alpha, beta = tl.exp2(m - m_new), tl.exp2(m_part - m_new)
        there = m_part > LOWEST  # NaN is not
        l = l * alpha + tl.where(there, l_part * beta, 0.0)  # noqa: E741
        acc = acc * alpha + tl.where(there, acc_part * beta, 0.0)
        m = m_new
    tl.store(o_ptr + row * d + cols, acc / tl.where(l == 0.0, 1.0, l), mask=cols < d)
    tl.store(lse_ptr + row, (m + tl.log2(l)) * LN2)
