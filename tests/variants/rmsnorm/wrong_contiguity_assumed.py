"""The autograd function flattens leading axes, and takes the last axis for contiguous.

breaks: 3
"""

import torch


def as_rows(t: torch.Tensor) -> torch.Tensor:
    return t.reshape(-1, t.shape[-1])  # wrong: reshape leaves a matrix as it is, strides and all
