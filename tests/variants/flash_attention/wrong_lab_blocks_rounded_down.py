"""The paper's block of keys is ⌊M/4d⌋, not ⌈M/4d⌉.

breaks: 7
"""


def block_sizes(M: int, d: int) -> tuple[int, int]:
    if M < 1 or d < 1:
        raise ValueError(f"M and d must be at least 1, but M = {M} and d = {d}")
    Bc = M // (4 * d)  # wrong: rounded up
    return min(Bc, d), Bc
