"""The forward in tiles adds P V to an acc that still has the old maximum for its base.

breaks: 3
"""

import torch


def flash_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    Br: int = 64,
    Bc: int = 64,
    causal: bool = False,
    q_start: int = 0,
    scale: float | None = None,
    stats: dict[str, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(q, k, v)
    check_blocks(Br, Bc)
    scale = scale_of(q, scale)
    add_to(stats, tiles=0, skipped=0, rescales=0)
    Nq, Nk = q.shape[-2], k.shape[-2]
    O = q.new_empty(q.shape)  # noqa: E741 - the papers' name
    L = q.new_empty(q.shape[:-1])
    for i0 in range(0, Nq, Br):
        i1 = min(i0 + Br, Nq)
        q_i = q[..., i0:i1, :]  # (..., br, d): br ≤ Br rows
        m = q.new_full(q_i.shape[:-1], NEG_INF)  # (..., br)
        ell = q.new_zeros(q_i.shape[:-1])  # (..., br)
        acc = q.new_zeros(q_i.shape)  # (..., br, d)
        for j0 in range(0, Nk, Bc):
            j1 = min(j0 + Bc, Nk)
            if causal and j0 > q_start + i1 - 1:  # the first key is beyond the last query
                add_to(stats, skipped=1)
                continue
            s = q_i @ k[..., j0:j1, :].mT * scale  # (..., br, bc)
            if causal:
                future = in_the_future(q_start + i0, q_start + i1, j0, j1, like=s)
                s = s.masked_fill(future, NEG_INF)
            m_new = torch.maximum(m, s.amax(dim=-1))
            # A row that has seen no key so far has m_new = −inf. With base 0 its p and its factor
            # come out as exp(−inf) = 0, and it stays as it was.
            base = torch.where(m_new == NEG_INF, 0, m_new)
            p = torch.exp(s - base[..., None])  # (..., br, bc)
            factor = torch.exp(m - base)  # (..., br)
            ell = ell * factor + p.sum(dim=-1)
            acc = acc + p @ v[..., j0:j1, :]
            add_to(stats, tiles=1, rescales=int(((m_new > m) & (m != NEG_INF)).sum()))
            m = m_new
        # wrong: acc had another base whenever m grew
        O[..., i0:i1, :] = acc / torch.where(ell == 0, 1, ell)[..., None]  # 0 / 1: no key, O = 0
        L[..., i0:i1] = m + torch.log(ell)  # −inf + log 0 = −inf
    return O, L
