"""Decodes with the forward kernel: no keys are split, so that most of a GPU would be idle.

test: 11.2
verdict: failed
says: n_split·B·G = 24 were expected
"""

import torch


def attention_decode(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, n_split: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    return attention_forward(q, k, v, scale=scale)
