"""A rank's cache has room for all KV heads of the model.

breaks: 5
"""

from collections.abc import Sequence

from transformer_lab import Config, KVCache


def tp_caches(cfg: Config, dev_params: Sequence[Params], batch: int) -> list[KVCache]:
    return [KVCache(cfg, batch) for _ in dev_params]  # wrong: the rank's KV heads only
