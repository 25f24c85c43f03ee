"""The forward computes with torch operations, and no kernel.

breaks: 9, 12
"""

import torch


def attention_forward(q, k, v, causal=False, scale=None, Br=None, Bc=None):
    check_arguments(q, k, v, scale=scale, Br=Br, Bc=Bc)
    (H, Nq, d), (G, Nk) = q.shape[1:], k.shape[1:3]
    wide_k, wide_v = (t.float().repeat_interleave(H // G, dim=1) for t in (k, v))
    s = q.float() @ wide_k.mT * (d**-0.5 if scale is None else scale)
    if causal:
        s = s.masked_fill(torch.arange(Nk) > torch.arange(Nq)[:, None] + Nk - Nq, -torch.inf)
    lse = s.logsumexp(-1)  # wrong: all of this is for a kernel to do
    p = torch.exp(s - torch.where(lse == -torch.inf, 0, lse)[..., None])
    return (p @ wide_v).to(q.dtype), lse
