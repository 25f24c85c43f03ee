"""A rank gets max(1, G/n) KV heads from d·G/n on: too few where n does not divide G, nor G n.

breaks: 3, 7, 8
"""

from llm_math import ModelConfig
from transformer_lab import Config


def kv_group_of_device(cfg: Config | ModelConfig, n: int, d: int) -> list[int]:
    H = cfg.n_heads
    if n < 1 or H % n:
        raise ValueError(f"n_heads is {H}; {n} ranks cannot share it equally")
    if not 0 <= d < n:
        raise ValueError(f"there is no rank {d}; there are {n}, from 0")
    G = cfg.n_kv_heads
    first = d * G // n
    return list(range(first, first + max(1, G // n)))  # wrong: with 3 KV heads, rank 0 of 2 has 2
