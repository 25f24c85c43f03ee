"""Returns a dataclass whose field is that dataclass.

test: 1.1
verdict: failed
says: RecursionError
"""

import torch


def state_of_scores(s: torch.Tensor, v: torch.Tensor | None = None) -> SoftmaxState:
    state = SoftmaxState(s, s, s)
    state.m = [(state,)]
    return state
