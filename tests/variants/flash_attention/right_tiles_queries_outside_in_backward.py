"""The backward in tiles goes through the queries outside, and adds to dK and dV instead of dQ."""

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
    add_to(stats, dq_atomic_adds=0)
    Nq, Nk = q.shape[-2], k.shape[-2]
    dQ, dK, dV = q.new_zeros(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape)
    for i0 in range(0, Nq, Br):
        rows = slice(i0, min(i0 + Br, Nq))
        D = (dO[..., rows, :] * O[..., rows, :]).sum(dim=-1, keepdim=True)
        for j0 in range(0, Nk, Bc):
            columns = slice(j0, min(j0 + Bc, Nk))
            if causal and j0 >= q_start + rows.stop:
                break
            K, V = k[..., columns, :], v[..., columns, :]
            P = torch.exp(q[..., rows, :] @ K.mT * scale - L[..., rows, None])
            if causal:
                future = in_the_future(q_start + i0, q_start + rows.stop, j0, columns.stop, like=P)
                P = P.masked_fill(future, 0)  # L = −inf makes inf of P, but only where it is masked
            dS = P * (dO[..., rows, :] @ V.mT - D) * scale
            dQ[..., rows, :] += dS @ K
            dK[..., columns, :] += dS.mT @ q[..., rows, :]
            dV[..., columns, :] += P.mT @ dO[..., rows, :]
            add_to(stats, dq_atomic_adds=(rows.stop - i0) * q.shape[-1])
    return dQ, dK, dV
