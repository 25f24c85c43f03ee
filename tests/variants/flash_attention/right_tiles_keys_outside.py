"""The forward in tiles goes through the keys outside, with O, l and m of all queries in memory.

That is FA1's order, with its O normalised after every tile; and exp is 2ˣ.
"""

import math

import torch


def flash_forward(q, k, v, Br=64, Bc=64, causal=False, q_start=0, scale=None, stats=None):
    check_arguments(q, k, v)
    check_blocks(Br, Bc)
    factor = scale_of(q, scale) / math.log(2)
    add_to(stats, tiles=0, skipped=0, rescales=0)
    Nq, Nk = q.shape[-2], k.shape[-2]
    O = q.new_zeros(q.shape)  # noqa: E741
    m, ell = q.new_full(q.shape[:-1], NEG_INF), q.new_zeros(q.shape[:-1])
    for j0 in range(0, Nk, Bc):
        j1 = min(j0 + Bc, Nk)
        for i0 in range(0, Nq, Br):
            i1 = min(i0 + Br, Nq)
            if causal and j0 >= q_start + i1:
                add_to(stats, skipped=1)
                continue
            s = q[..., i0:i1, :] @ k[..., j0:j1, :].mT * factor
            if causal:
                future = in_the_future(q_start + i0, q_start + i1, j0, j1, like=s)
                s = s.masked_fill(future, NEG_INF)
            old, old_ell = m[..., i0:i1].clone(), ell[..., i0:i1].clone()
            new = torch.maximum(old, s.amax(dim=-1))
            base = new.clamp(min=torch.finfo(q.dtype).min)
            P = torch.exp2(s - base[..., None])
            kept = old_ell * torch.exp2(old - base)
            total = kept + P.sum(dim=-1)
            sums = O[..., i0:i1, :] * kept[..., None] + P @ v[..., j0:j1, :]
            O[..., i0:i1, :] = sums / torch.where(total == 0, 1, total)[..., None]
            m[..., i0:i1], ell[..., i0:i1] = new, total
            add_to(stats, tiles=1, rescales=int(((new > old) & (old != NEG_INF)).sum()))
    return O, (m + torch.log2(ell)) * math.log(2)
