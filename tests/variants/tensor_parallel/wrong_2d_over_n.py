"""Divides the 2-D layout's time by n, where it is by √n.

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
        return 8 * tokens * E * bytes_per_elem / (n * bw)  # wrong: √n
    if variant == "gathered":
        N = min(max(math.sqrt(tokens * n / F), 1.0), float(n))
        return (2 * E * F * N / n + 2 * tokens * E / N) * bytes_per_elem / bw, N
    raise ValueError(f"variant is {variant!r}; it is '1d', '2d' or 'gathered'")
