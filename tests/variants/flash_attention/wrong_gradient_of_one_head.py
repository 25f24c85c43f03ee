"""dk and dv are those of the first query head of a group; the others' are missing.

breaks: 10, 12
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
def delta_kernel(
    o_ptr, do_ptr, delta_ptr,
    o_stride_b, o_stride_h, o_stride_n,
    do_stride_b, do_stride_h, do_stride_n,
    H, Nq, d: tl.constexpr, WIDTH: tl.constexpr, Br: tl.constexpr,
):  # fmt: skip
    start, head = tl.program_id(0) * Br, tl.program_id(1)
    b, h = head // H, head % H
    o = rows_of(o_ptr + b * o_stride_b + h * o_stride_h, start, Nq, o_stride_n, d, Br, WIDTH)
    do = rows_of(do_ptr + b * do_stride_b + h * do_stride_h, start, Nq, do_stride_n, d, Br, WIDTH)
    rows = start + tl.arange(0, Br)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1)
    tl.store(delta_ptr + head * Nq + rows, delta, mask=rows < Nq)


@triton.jit
def keys_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    do_stride_b, do_stride_h, do_stride_n,
    H, Nq, Nk, scale,
    d: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    start, head = tl.program_id(0) * Bc, tl.program_id(1)  # head: b · G + g
    b, g = head // (H // GROUP), head % (H // GROUP)
    k = rows_of(k_ptr + b * k_stride_b + g * k_stride_h, start, Nk, k_stride_n, d, Bc, WIDTH)
    v = rows_of(v_ptr + b * v_stride_b + g * v_stride_h, start, Nk, v_stride_n, d, Bc, WIDTH)
    keys, dims = start + tl.arange(0, Bc), tl.arange(0, WIDTH)
    first = tl.maximum(start + Nq - Nk, 0) // Br * Br if CAUSAL else 0  # block of queries

    dk = tl.zeros((Bc, WIDTH), tl.float32)
    dv = tl.zeros((Bc, WIDTH), tl.float32)
    # wrong: up to (g + 1) · GROUP
    for h in range(g * GROUP, g * GROUP + 1):
        for i in range(first, Nq, Br):
            rows = i + tl.arange(0, Br)
            at = (b * H + h) * Nq + rows
            q = rows_of(q_ptr + b * q_stride_b + h * q_stride_h, i, Nq, q_stride_n, d, Br, WIDTH)
            do = rows_of(
                do_ptr + b * do_stride_b + h * do_stride_h, i, Nq, do_stride_n, d, Br, WIDTH
            )
            lse = tl.load(lse_ptr + at, mask=rows < Nq, other=0.0)
            delta = tl.load(delta_ptr + at, mask=rows < Nq, other=0.0)
            s = tl.dot(q, k.T, input_precision="ieee") * scale  # (Br, Bc)
            seen = (keys[None, :] < Nk) & (rows[:, None] < Nq)
            if CAUSAL:
                seen &= keys[None, :] <= rows[:, None] + Nk - Nq
            p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)
            dp = tl.dot(do, v.T, input_precision="ieee")
            ds = p * (dp - delta[:, None])
            dv += tl.dot(p.to(do.dtype).T, do, input_precision="ieee")
            dk += tl.dot(ds.to(q.dtype).T, q, input_precision="ieee")

    out = (head * Nk + keys[:, None]) * d + dims[None, :]
    mask = (keys < Nk)[:, None] & (dims < d)[None, :]
    tl.store(dk_ptr + out, dk * scale, mask=mask)
    tl.store(dv_ptr + out, dv, mask=mask)


@triton.jit
def queries_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    do_stride_b, do_stride_h, do_stride_n,
    H, Nq, Nk, scale,
    d: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    start, head = tl.program_id(0) * Br, tl.program_id(1)  # head: b · H + h
    b, h = head // H, head % H
    g = h // GROUP
    q = rows_of(q_ptr + b * q_stride_b + h * q_stride_h, start, Nq, q_stride_n, d, Br, WIDTH)
    do = rows_of(do_ptr + b * do_stride_b + h * do_stride_h, start, Nq, do_stride_n, d, Br, WIDTH)
    rows, dims = start + tl.arange(0, Br), tl.arange(0, WIDTH)
    lse = tl.load(lse_ptr + head * Nq + rows, mask=rows < Nq, other=0.0)
    delta = tl.load(delta_ptr + head * Nq + rows, mask=rows < Nq, other=0.0)
    end = tl.minimum(start + Br, Nq) + Nk - Nq if CAUSAL else Nk

    dq = tl.zeros((Br, WIDTH), tl.float32)
    for j in range(0, end, Bc):
        keys = j + tl.arange(0, Bc)
        k = rows_of(k_ptr + b * k_stride_b + g * k_stride_h, j, Nk, k_stride_n, d, Bc, WIDTH)
        v = rows_of(v_ptr + b * v_stride_b + g * v_stride_h, j, Nk, v_stride_n, d, Bc, WIDTH)
        s = tl.dot(q, k.T, input_precision="ieee") * scale  # (Br, Bc)
        seen = (keys[None, :] < Nk) & (rows[:, None] < Nq)
        if CAUSAL:
            seen &= keys[None, :] <= rows[:, None] + Nk - Nq
        p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)
        dp = tl.dot(do, v.T, input_precision="ieee")
        ds = p * (dp - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k, input_precision="ieee")

    out = (head * Nq + rows[:, None]) * d + dims[None, :]
    mask = (rows < Nq)[:, None] & (dims < d)[None, :]
    tl.store(dq_ptr + out, dq * scale, mask=mask)


def attention_backward(q, k, v, o, lse, do, causal=False, scale=None, Br=None, Bc=None):
    check_arguments(q, k, v, o, lse, do, scale=scale, Br=Br, Bc=Bc)
    (B, H, Nq, d), (G, Nk) = q.shape, k.shape[1:3]
    dq = torch.empty((B, H, Nq, d), dtype=q.dtype, device=q.device)
    dk, dv = (torch.empty((B, G, Nk, d), dtype=q.dtype, device=q.device) for _ in range(2))
    delta = torch.empty((B, H, Nq), dtype=torch.float32, device=q.device)
    Br, Bc, width = Br or 64, Bc or 64, max(16, triton.next_power_of_2(d))
    blocks = {"GROUP": H // G, "CAUSAL": causal, "Br": Br, "Bc": Bc}
    rows = (triton.cdiv(Nq, Br), B * H)
    delta_kernel[rows](
        o, do, delta, *o.stride()[:3], *do.stride()[:3], H, Nq, d=d, WIDTH=width, Br=Br
    )
    strides = [step for t in (q, k, v, do) for step in t.stride()[:3]]
    sizes = (H, Nq, Nk, d**-0.5 if scale is None else scale, d, width)
    keys_kernel[(triton.cdiv(Nk, Bc), B * G)](
        q, k, v, do, lse, delta, dk, dv, *strides, *sizes, **blocks
    )
    queries_kernel[rows](q, k, v, do, lse, delta, dq, *strides, *sizes, **blocks)
    return dq, dk, dv
