"""Returns a text with half of a surrogate pair, and one that repaints the terminal.

test: 6.1
verdict: failed
says: returned '?
"""


def attention_flops(
    N: int, d: int, causal: bool = False, backward: bool = False, recompute: bool = True
) -> str:
    return "\ud800\x1b[2J"
