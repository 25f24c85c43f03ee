"""The forward's causal mask lets query i see keys 0 … i, not 0 … Nk − Nq + i.

breaks: 9, 12
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
def forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    H, Nq, Nk, scale,
    d: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    start, head = tl.program_id(0) * Br, tl.program_id(1)
    b, h = head // H, head % H
    g = h // GROUP
    q = rows_of(
        q_ptr + b * q_stride_b + h * q_stride_h, start, Nq, q_stride_n, d, Br, WIDTH
    )  # (Br, WIDTH)
    rows, dims = start + tl.arange(0, Br), tl.arange(0, WIDTH)
    last = rows if CAUSAL else rows * 0 + Nk - 1  # (Br,) the last key that a query sees
    # wrong: Nk − Nq keys lie before query 0
    end = tl.minimum(start + Br, Nk) if CAUSAL else Nk

    m = tl.full((Br,), float("-inf"), tl.float32)
    l = tl.zeros((Br,), tl.float32)  # noqa: E741
    acc = tl.zeros((Br, WIDTH), tl.float32)
    for j in range(0, end, Bc):
        k = rows_of(k_ptr + b * k_stride_b + g * k_stride_h, j, Nk, k_stride_n, d, Bc, WIDTH)
        v = rows_of(v_ptr + b * v_stride_b + g * v_stride_h, j, Nk, v_stride_n, d, Bc, WIDTH)
        s = tl.dot(q, k.T, input_precision="ieee") * scale  # (Br, Bc)
        keys = j + tl.arange(0, Bc)[None, :]
        s = tl.where((keys <= last[:, None]) & (keys < Nk), s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        base = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - base[:, None])
        alpha = tl.exp(m - base)
        l = l * alpha + tl.sum(p, axis=1)  # noqa: E741
        acc = acc * alpha[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new

    o = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    mask = (rows < Nq)[:, None] & (dims < d)[None, :]
    tl.store(o_ptr + (head * Nq + rows[:, None]) * d + dims[None, :], o, mask=mask)
    tl.store(lse_ptr + head * Nq + rows, m + tl.log(l), mask=rows < Nq)


def attention_forward(q, k, v, causal=False, scale=None, Br=None, Bc=None):
    check_arguments(q, k, v, scale=scale, Br=Br, Bc=Bc)
    (B, H, Nq, d), (G, Nk) = q.shape, k.shape[1:3]
    o = torch.empty((B, H, Nq, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Nq), dtype=torch.float32, device=q.device)
    Br, Bc = Br or 64, Bc or 64
    forward_kernel[(triton.cdiv(Nq, Br), B * H)](
        q, k, v, o, lse, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        H, Nq, Nk, d**-0.5 if scale is None else scale,
        d=d, WIDTH=max(16, triton.next_power_of_2(d)), GROUP=H // G, CAUSAL=causal, Br=Br, Bc=Bc,
    )  # fmt: skip
    return o, lse
