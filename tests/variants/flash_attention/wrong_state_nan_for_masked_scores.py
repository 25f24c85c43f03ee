"""The state of scores that are all −inf is NaN.

breaks: 1
"""

import torch


def state_of_scores(s: torch.Tensor, v: torch.Tensor | None = None) -> SoftmaxState:

    # The largest of no numbers, which is an error in PyTorch, is −inf here.
    m = s.amax(dim=-1) if s.shape[-1] > 0 else s.new_full(s.shape[:-1], NEG_INF)
    base = m  # wrong: −inf − (−inf) is NaN
    p = torch.exp(s - base[..., None])  # (..., n)
    return SoftmaxState(m, p.sum(dim=-1), None if v is None else p @ v)
