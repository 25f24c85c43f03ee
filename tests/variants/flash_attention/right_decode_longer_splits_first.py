"""The splits of the decoding that have a key more come first; O is the sum of all parts at once."""

import torch


def flash_decode(q, k, v, n_split, scale=None):
    check_arguments(q, k, v)
    if n_split < 1:
        raise ValueError(f"n_split must be at least 1, but is {n_split}")
    scale = scale_of(q, scale)
    pieces = zip(
        torch.tensor_split(k, n_split, dim=-2), torch.tensor_split(v, n_split, dim=-2), strict=True
    )
    parts = [state_of_scores(q @ K.mT * scale, V) for K, V in pieces]
    m = torch.stack([part.m for part in parts])
    weights = torch.exp(m - m.amax(dim=0).clamp(min=torch.finfo(q.dtype).min))
    total = sum(w * part.l for w, part in zip(weights, parts, strict=True))
    o = sum(w[..., None] * part.o for w, part in zip(weights, parts, strict=True))
    return o / torch.where(total == 0, 1, total)[..., None], parts
