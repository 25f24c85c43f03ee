"""The forward of one rank after the other, as far as they need nothing of each other, with the
communicator's own collectives; logits are gathered with the vocabulary in front.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from spmd import Communicator
from transformer_lab import Config, KVCache, rms_norm


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
    B, T = tokens.shape
    shape = (B, T, cfg.d_model)
    xs = [np.array(p["embed"][tokens]) for p in dev_params]

    def add(parts: list[np.ndarray], label: str) -> None:
        for x, s in zip(xs, comm.all_reduce([a.ravel() for a in parts], algo, label), strict=True):
            x += s.reshape(shape)

    pos0 = caches[0].length if caches else 0
    for i in range(cfg.n_layers):
        parts = []
        for at, r in enumerate(comm.ranks):
            p = dev_params[at]
            h = rms_norm(xs[at], p["layers"][i]["attn_norm"], cfg.norm_eps)
            cache = caches[at] if caches else None
            parts.append(attention_of_rank(p, cfg, comm.n, r, i, h, pos0, cache))
        add(parts, "attention")
        parts = []
        for x, p in zip(xs, dev_params, strict=True):
            h = rms_norm(x, p["layers"][i]["mlp_norm"], cfg.norm_eps)
            parts.append(mlp_of_rank(p, i, h))
        add(parts, "mlp")
    if caches:
        for cache in caches:
            cache.length = pos0 + T
    logits = [
        rms_norm(x, p["final_norm"], cfg.norm_eps) @ p["lm_head"]
        for x, p in zip(xs, dev_params, strict=True)
    ]
    if not gather_logits:
        return logits
    fronts = [np.moveaxis(mine, -1, 0) for mine in logits]  # (v/n, B, T)
    (whole, *_) = comm.all_gather([front.flatten() for front in fronts], label="logits")
    return np.moveaxis(whole.reshape(cfg.vocab, B, T), 0, -1)
