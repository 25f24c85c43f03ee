"""The backward in tiles subtracts L = −inf from S = −inf.

breaks: 4
"""

import torch


def flash_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    O: torch.Tensor,  # noqa: E741 - the papers' name
    L: torch.Tensor,
    dO: torch.Tensor,
    Br: int = 64,
    Bc: int = 64,
    causal: bool = False,
    scale: float | None = None,
    stats: dict[str, int] | None = None,
    q_start: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    check_arguments(q, k, v, O, L, dO)
    check_blocks(Br, Bc)
    scale = scale_of(q, scale)
    add_to(stats, dq_atomic_adds=0)
    Nq, Nk = q.shape[-2], k.shape[-2]
    D = (dO * O).sum(dim=-1)  # (..., Nq)
    dQ, dK, dV = q.new_zeros(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape)
    # A row without a visible key has L = −inf, and its scores are −inf as well: exp(−inf − 0) = 0.
    base = L  # wrong: −inf − (−inf) is NaN
    for j0 in range(0, Nk, Bc):
        j1 = min(j0 + Bc, Nk)
        k_j, v_j = k[..., j0:j1, :], v[..., j0:j1, :]  # (..., bc, d)
        for i0 in range(0, Nq, Br):
            i1 = min(i0 + Br, Nq)
            if causal and j0 > q_start + i1 - 1:
                continue
            q_i, dO_i = q[..., i0:i1, :], dO[..., i0:i1, :]  # (..., br, d)
            s = q_i @ k_j.mT * scale  # (..., br, bc)
            if causal:
                future = in_the_future(q_start + i0, q_start + i1, j0, j1, like=s)
                s = s.masked_fill(future, NEG_INF)
            p = torch.exp(s - base[..., i0:i1, None])  # (..., br, bc)
            dS = p * (dO_i @ v_j.mT - D[..., i0:i1, None])  # (..., br, bc)
            dV[..., j0:j1, :] += p.mT @ dO_i
            dK[..., j0:j1, :] += dS.mT @ q_i * scale
            dQ[..., i0:i1, :] += dS @ k_j * scale
            add_to(stats, dq_atomic_adds=(i1 - i0) * q.shape[-1])
    return dQ, dK, dV
