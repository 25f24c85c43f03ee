"""Takes all keys of a head in one tile, with a softmax in one piece: no online softmax at all.

On the simulator one tile may hold 2²⁰ numbers, and this is within every budget. A multiprocessor
has 65,536 registers.

test: 9.3
verdict: failed
says: makes a tile of
"""

import torch
import triton
import triton.language as tl


@triton.jit
def one_tile_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    qb, qh, qn, kb, kh, kn, vb, vh, vn,
    H, Nq, Nk, scale,
    d: tl.constexpr, D: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """All of one head: o (Nq, d) and lse (Nq,)."""
    head = tl.program_id(0)
    b, h = head // H, head % H
    rows, keys, cols = tl.arange(0, ROWS), tl.arange(0, KEYS), tl.arange(0, D)
    live = (rows < Nq)[:, None] & (cols < d)[None, :]
    held = (keys < Nk)[:, None] & (cols < d)[None, :]
    q = tl.load(q_ptr + b * qb + h * qh + rows[:, None] * qn + cols[None, :], live, 0.0)
    k_at = k_ptr + b * kb + h // GROUP * kh + keys[:, None] * kn + cols[None, :]
    v_at = v_ptr + b * vb + h // GROUP * vh + keys[:, None] * vn + cols[None, :]
    k, v = tl.load(k_at, held, 0.0), tl.load(v_at, held, 0.0)
    s = tl.dot(q, k.T, input_precision="ieee") * scale
    seen = (keys < Nk)[None, :] & (rows < ROWS)[:, None]
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None] + Nk - Nq)
    s = tl.where(seen, s, float("-inf"))
    m = tl.max(s, 1)
    p = tl.exp(s - tl.where(m == float("-inf"), 0.0, m)[:, None])
    total = tl.sum(p, 1)
    o = (
        tl.dot(p.to(v.dtype), v, input_precision="ieee")
        / tl.where(total == 0.0, 1.0, total)[:, None]
    )
    tl.store(o_ptr + head * Nq * d + rows[:, None] * d + cols[None, :], o, live)
    tl.store(lse_ptr + head * Nq + rows, m + tl.log(total), rows < Nq)


def attention_forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    causal: bool = False, scale: float | None = None,
    Br: int | None = None, Bc: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    (B, H, Nq, d), (G, Nk) = q.shape, k.shape[1:3]
    o = torch.empty(q.shape, dtype=q.dtype)
    lse = torch.empty((B, H, Nq), dtype=torch.float32)
    one_tile_kernel[(B * H,)](
        q, k, v, o, lse, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], H, Nq, Nk,
        d**-0.5 if scale is None else scale,
        d=d, D=max(16, triton.next_power_of_2(d)), GROUP=H // G, CAUSAL=causal,
        ROWS=max(16, triton.next_power_of_2(Nq)), KEYS=max(16, triton.next_power_of_2(Nk)),
    )  # fmt: skip
    return o, lse
