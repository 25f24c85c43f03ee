"""A rank's cache has room for max(1, G/n) KV heads: too few where n does not divide G, nor G n.

breaks: 5
"""

from collections.abc import Sequence
from dataclasses import replace

from transformer_lab import Config, KVCache


def tp_caches(cfg: Config, dev_params: Sequence[Params], batch: int) -> list[KVCache]:
    n = cfg.d_ff // dev_params[0]["layers"][0]["w_gate"].shape[1]
    heads = max(1, cfg.n_kv_heads // n)  # wrong: as many as the rank has
    own = replace(cfg, n_heads=heads, n_kv_heads=heads)
    return [KVCache(own, batch, like=p["embed"]) for p in dev_params]
