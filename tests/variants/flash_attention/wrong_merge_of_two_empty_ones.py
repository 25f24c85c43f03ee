"""Two states of no scores merge into NaN: −inf − (−inf).

breaks: 1, 5
"""

import torch


def merge_states(a: SoftmaxState, b: SoftmaxState) -> SoftmaxState:
    m = torch.maximum(a.m, b.m)
    base = m  # wrong: both may be −inf
    from_a, from_b = torch.exp(a.m - base), torch.exp(b.m - base)  # (...)
    o = None
    if a.o is not None and b.o is not None:
        o = a.o * from_a[..., None] + b.o * from_b[..., None]  # (..., d)
    return SoftmaxState(m, a.l * from_a + b.l * from_b, o)
