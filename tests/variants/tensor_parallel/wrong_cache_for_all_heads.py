"""A rank's cache has room for all KV heads of the model.

breaks: 5
"""

from collections.abc import Sequence

from transformer_lab import Config, KVCache


def tp_caches(cfg: Config, dev_params: Sequence[Params], batch: int) -> list[KVCache]:
    # wrong: the rank's KV heads only
    return [KVCache(cfg, batch, like=p["embed"]) for p in dev_params]
