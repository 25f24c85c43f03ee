"""Gathers weights among √(t·n/F) chips, also where that is less than one or more than there are.

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
        N = math.sqrt(tokens * n / F)  # wrong: from 1 to n
        return (2 * E * F * N / n + 2 * tokens * E / N) * bytes_per_elem / bw, N
    raise ValueError(f"variant is {variant!r}; it is '1d', '2d' or 'gathered'")
