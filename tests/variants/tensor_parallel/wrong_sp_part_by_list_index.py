"""Embeds the positions of an entry's place in the list, where they are its rank's.

breaks: 6
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config


def tp_forward_sp(
    dev_params: Sequence[Params], cfg: Config, tokens: np.ndarray, comm: Communicator
) -> np.ndarray:
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    T, n = tokens.shape[1], comm.n
    if T % n:
        raise ValueError(f"there are {T} positions; {n} ranks cannot share them equally")
    parts = shard(tokens, 1, n)
    held = list(zip(comm.ranks, dev_params, strict=True))
    # wrong: comm.ranks
    xs = [p["embed"][part] for part, (_, p) in zip(parts, held, strict=False)]
    for index in range(cfg.n_layers):
        hs = all_gather(comm, _normed(xs, dev_params, cfg, "attn_norm", index), axis=1)
        partial = [
            attention_of_rank(p, cfg, n, r, index, h) for h, (r, p) in zip(hs, held, strict=True)
        ]
        xs = [x + s for x, s in zip(xs, reduce_scatter(comm, partial, axis=1), strict=True)]
        hs = all_gather(comm, _normed(xs, dev_params, cfg, "mlp_norm", index), axis=1)
        partial = [mlp_of_rank(p, index, h) for h, (_, p) in zip(hs, held, strict=True)]
        xs = [x + s for x, s in zip(xs, reduce_scatter(comm, partial, axis=1), strict=True)]
    hs = all_gather(comm, _normed(xs, dev_params, cfg, "final_norm"), axis=1)
    return all_gather(comm, [h @ p["lm_head"] for h, (_, p) in zip(hs, held, strict=True)], 2)[0]
