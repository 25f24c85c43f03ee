"""Returns a SoftmaxState of another make, which has no l and no o.

test: 1.1
verdict: failed
says: has no field 'l'
"""

from dataclasses import dataclass

import torch


@dataclass
class SoftmaxState:
    m: torch.Tensor


def state_of_scores(s: torch.Tensor, v: torch.Tensor | None = None) -> SoftmaxState:
    return SoftmaxState(s.amax(-1))
