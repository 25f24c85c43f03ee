"""The causal mask of the torch tiles hides a query's own position, too.

breaks: 2, 3, 4
file: attention_kernels.py
"""

import torch


def in_the_future(q_from: int, q_to: int, k_from: int, k_to: int, like: torch.Tensor):
    queries = torch.arange(q_from, q_to, device=like.device)
    keys = torch.arange(k_from, k_to, device=like.device)
    return keys >= queries[:, None]  # wrong: a query sees its own position
