"""Rounds N to a whole number of chips.

breaks: 8
"""

import math


def pope_ffn_comm(
    variant: str,
    tokens: float,
    E: int,
    F: int,
    n: int,
    bw: float,
    bytes_per_elem: float = 2.0,
) -> float | tuple[float, float]:
    if variant == "1d":
        return 2 * tokens * E * bytes_per_elem / bw
    if variant == "2d":
        return 8 * tokens * E * bytes_per_elem / (math.sqrt(n) * bw)
    if variant == "gathered":
        # wrong: the N where both terms are equal
        N = float(round(min(max(math.sqrt(tokens * n / F), 1.0), float(n))))
        return (2 * E * F * N / n + 2 * tokens * E / N) * bytes_per_elem / bw, N
    raise ValueError(f"variant is {variant!r}; it is '1d', '2d' or 'gathered'")
