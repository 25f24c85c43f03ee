"""The backward in tiles forms P and dS whole; its count is that of tiles all the same.

Everything is right but the memory that it takes.

breaks: 4
"""

import torch


def flash_backward(
    q,
    k,
    v,
    O,  # noqa: E741
    L,
    dO,
    Br=64,
    Bc=64,
    causal=False,
    scale=None,
    stats=None,
    q_start=0,
):
    check_arguments(q, k, v, O, L, dO)
    check_blocks(Br, Bc)
    scale = scale_of(q, scale)
    Nq, Nk = q.shape[-2], k.shape[-2]
    S = q @ k.mT * scale  # wrong: (..., Nq, Nk)
    if causal:
        S = S.masked_fill(in_the_future(q_start, q_start + Nq, 0, Nk, like=S), NEG_INF)
    P = torch.exp(S - torch.where(L == NEG_INF, 0, L)[..., None])
    dS = P * (dO @ v.mT - (dO * O).sum(dim=-1)[..., None])
    add_to(stats, dq_atomic_adds=0)
    for j0 in range(0, Nk, Bc):
        for i0 in range(0, Nq, Br):
            i1 = min(i0 + Br, Nq)
            if not (causal and j0 > q_start + i1 - 1):
                add_to(stats, dq_atomic_adds=(i1 - i0) * q.shape[-1])
    return dS @ k * scale, dS.mT @ q * scale, P.mT @ dO
