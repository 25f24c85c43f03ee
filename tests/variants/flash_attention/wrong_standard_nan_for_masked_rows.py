"""Standard attention takes torch.softmax, which is NaN for a row of −inf.

breaks: 2
file: attention_kernels.py
"""

import torch


def standard_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    q_start: int = 0,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    check_arguments(q, k, v)
    scale = scale_of(q, scale)
    Nq, Nk = q.shape[-2], k.shape[-2]
    S = q @ k.mT * scale  # (..., Nq, Nk)
    if causal:
        S = S.masked_fill(in_the_future(q_start, q_start + Nq, 0, Nk, like=S), NEG_INF)
    L = torch.logsumexp(S, dim=-1)  # (..., Nq)
    P = torch.softmax(S, dim=-1)  # wrong: 0 / 0 in a row without a visible key
    return P @ v, L
