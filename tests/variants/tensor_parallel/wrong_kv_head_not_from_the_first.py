"""Numbers KV heads as the whole model does, where the rank's own are counted from 0.

breaks: 4, 5, 6, 7
"""

from transformer_lab import Config


def kv_head_of_query(p: Params, cfg: Config, n: int, r: int) -> list[int]:
    R = cfg.n_heads // cfg.n_kv_heads
    heads = range(r * cfg.n_heads // n, (r + 1) * cfg.n_heads // n)
    return [h // R for h in heads]  # wrong: minus the rank's first
