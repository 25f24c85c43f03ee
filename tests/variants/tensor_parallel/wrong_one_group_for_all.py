"""A rank is thought to need one KV head only, that of its first query head.

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
    return [d * H // n // (H // cfg.n_kv_heads)]  # wrong: its last query head may use another
