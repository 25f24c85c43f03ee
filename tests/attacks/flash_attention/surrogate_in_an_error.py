"""Raises an error whose text holds half of a surrogate pair, which no UTF-8 can hold.

test: 6.1
verdict: failed
says: ValueError: ?
"""


def attention_flops(
    N: int, d: int, causal: bool = False, backward: bool = False, recompute: bool = True
) -> int:
    raise ValueError("\ud800")
