"""The forward in tiles forms the scores whole; its counts are those of tiles all the same.

Everything is right but the memory that it takes.

breaks: 3
"""

import torch


def flash_forward(q, k, v, Br=64, Bc=64, causal=False, q_start=0, scale=None, stats=None):
    check_arguments(q, k, v)
    check_blocks(Br, Bc)
    Nq, Nk = q.shape[-2], k.shape[-2]
    S = (q * scale_of(q, scale)) @ k.mT  # wrong: (..., Nq, Nk)
    if causal:
        S.masked_fill_(in_the_future(q_start, q_start + Nq, 0, Nk, like=S), NEG_INF)
    add_to(stats, tiles=0, skipped=0, rescales=0)
    m = q.new_full(q.shape[:-1], NEG_INF)
    for j0 in range(0, Nk, Bc):
        for i0 in range(0, Nq, Br):
            skipped = causal and j0 > q_start + min(i0 + Br, Nq) - 1
            add_to(stats, tiles=1 - skipped, skipped=int(skipped))
        m_new = torch.maximum(m, S[..., j0 : j0 + Bc].amax(dim=-1))
        add_to(stats, rescales=int(((m_new > m) & (m != NEG_INF)).sum()))
        m = m_new
    P = S.sub_(torch.where(m == NEG_INF, 0, m)[..., None]).exp_()  # in place: one matrix in all
    ell = P.sum(dim=-1)
    return P @ v / torch.where(ell == 0, 1, ell)[..., None], m + torch.log(ell)
