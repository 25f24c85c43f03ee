"""Takes any other variant for the gathered one.

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
    N = min(max(math.sqrt(tokens * n / F), 1.0), float(n))  # wrong: for "gathered" only
    return (2 * E * F * N / n + 2 * tokens * E / N) * bytes_per_elem / bw, N
