"""Gathers the head's columns, and makes all logits at each rank, where the logits are to be
gathered.

breaks: 4
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from spmd import Communicator
from transformer_lab import Config, KVCache


def tp_forward(
    dev_params: Sequence[Params],
    cfg: Config,
    tokens: np.ndarray,
    comm: Communicator,
    caches: Sequence[KVCache] | None = None,
    algo: str = "ring",
    gather_logits: bool = True,
) -> Any:
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    if caches is not None:
        check_held(comm, caches=caches)
    pos0 = 0 if caches is None else caches[0].length
    held = list(zip(comm.ranks, dev_params, caches or [None] * len(dev_params), strict=True))
    xs = [p["embed"][tokens] for p in dev_params]  # (B, T, d)
    for index in range(cfg.n_layers):
        hs = _normed(xs, dev_params, cfg, "attn_norm", index)
        partial = [
            attention_of_rank(p, cfg, comm.n, r, index, h, pos0, cache)
            for h, (r, p, cache) in zip(hs, held, strict=True)
        ]
        xs = [x + s for x, s in zip(xs, all_reduce(comm, partial, algo), strict=True)]
        hs = _normed(xs, dev_params, cfg, "mlp_norm", index)
        partial = [mlp_of_rank(p, index, h) for h, p in zip(hs, dev_params, strict=True)]
        xs = [x + s for x, s in zip(xs, all_reduce(comm, partial, algo), strict=True)]
    for cache in caches or ():
        cache.length += tokens.shape[1]
    hs = _normed(xs, dev_params, cfg, "final_norm")
    if not gather_logits:
        return [h @ p["lm_head"] for h, p in zip(hs, dev_params, strict=True)]
    return hs[0] @ all_gather(comm, [p["lm_head"] for p in dev_params], axis=1)[0]  # wrong: logits
