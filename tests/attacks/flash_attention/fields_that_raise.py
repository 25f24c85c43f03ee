"""Returns a dataclass that claims to be a tensor, and ends the process when it is looked into.

test: 1.1
verdict: crashed
says: tried to end the process
"""

from dataclasses import dataclass

import torch


@dataclass
class SoftmaxState:
    m: torch.Tensor
    l: torch.Tensor  # noqa: E741
    o: torch.Tensor | None = None

    def __getattribute__(self, name):
        if name == "__class__":
            return torch.Tensor
        raise SystemExit(0)
