"""Gathers x behind each block, and norms all of it at each rank: no more bytes, but the residual
stream takes as much memory as before, and every rank does all of the norms.

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
    shard(tokens, 1, comm.n)
    held = list(zip(comm.ranks, dev_params, strict=True))
    xs = [p["embed"][tokens] for p in dev_params]  # wrong: (B, T/n, d)
    for index in range(cfg.n_layers):
        hs = _normed(xs, dev_params, cfg, "attn_norm", index)
        partial = [
            attention_of_rank(p, cfg, comm.n, r, index, h)
            for h, (r, p) in zip(hs, held, strict=True)
        ]
        sums = all_gather(comm, reduce_scatter(comm, partial, axis=1), axis=1)
        xs = [x + s for x, s in zip(xs, sums, strict=True)]
        hs = _normed(xs, dev_params, cfg, "mlp_norm", index)
        partial = [mlp_of_rank(p, index, h) for h, p in zip(hs, dev_params, strict=True)]
        sums = all_gather(comm, reduce_scatter(comm, partial, axis=1), axis=1)
        xs = [x + s for x, s in zip(xs, sums, strict=True)]
    hs = _normed(xs, dev_params, cfg, "final_norm")
    return all_gather(comm, [h @ p["lm_head"] for h, p in zip(hs, dev_params, strict=True)], 2)[0]
