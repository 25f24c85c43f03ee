"""Sums the gradient at a block's result over the ranks, as g does forward: it is n times too
large.

breaks: 7
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config, rms_norm_backward


def tp_backward(
    dev_params: Sequence[Params],
    cfg: Config,
    tokens: np.ndarray,
    dlogits: np.ndarray,
    comm: Communicator,
) -> list[Params]:
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    n, eps = comm.n, cfg.norm_eps
    held = list(zip(comm.ranks, dev_params, strict=True))
    grads: list[Params] = [{"layers": [{} for _ in p["layers"]]} for p in dev_params]

    xs = [p["embed"][tokens] for p in dev_params]
    before_attention, before_mlp = [], []
    for index in range(cfg.n_layers):
        before_attention.append(xs)
        hs = _normed(xs, dev_params, cfg, "attn_norm", index)
        partial = [
            attention_of_rank(p, cfg, n, r, index, h) for h, (r, p) in zip(hs, held, strict=True)
        ]
        xs = [x + s for x, s in zip(xs, all_reduce(comm, partial), strict=True)]
        before_mlp.append(xs)
        hs = _normed(xs, dev_params, cfg, "mlp_norm", index)
        partial = [mlp_of_rank(p, index, h) for h, (_, p) in zip(hs, held, strict=True)]
        xs = [x + s for x, s in zip(xs, all_reduce(comm, partial), strict=True)]

    columns = shard(dlogits, 2, n)
    hs = _normed(xs, dev_params, cfg, "final_norm")
    heads = [_weight_gradient(h, columns[r]) for h, (r, _) in zip(hs, held, strict=True)]
    dhs = all_reduce(comm, [columns[r] @ p["lm_head"].T for r, p in held])
    dxs = []
    for (_, p), g, x, dh in zip(held, grads, xs, dhs, strict=True):
        dx, g["final_norm"] = rms_norm_backward(dh, x, p["final_norm"], eps)
        dxs.append(dx)

    for index in reversed(range(cfg.n_layers)):
        for norm, stored in (("mlp_norm", before_mlp), ("attn_norm", before_attention)):
            hs = _normed(stored[index], dev_params, cfg, norm, index)
            dxs = all_reduce(comm, dxs)  # wrong: g does nothing backward
            partial = []
            for (r, p), g, h, dx in zip(held, grads, hs, dxs, strict=True):
                if norm == "mlp_norm":
                    dh, weights = mlp_backward_of_rank(p, index, h, dx)
                else:
                    dh, weights = attention_backward_of_rank(p, cfg, n, r, index, h, dx)
                g["layers"][index] |= weights
                partial.append(dh)
            sums = all_reduce(comm, partial)
            for i, ((_, p), g, x) in enumerate(zip(held, grads, stored[index], strict=True)):
                dx, g["layers"][index][norm] = rms_norm_backward(
                    sums[i], x, p["layers"][index][norm], eps
                )
                dxs[i] = dxs[i] + dx
    grads = sum_over_replicas(comm, cfg, grads)

    for (_, p), g, dx in zip(held, grads, dxs, strict=True):
        g["embed"] = np.zeros_like(p["embed"])
        np.add.at(g["embed"], tokens, dx)
    if dev_params[0]["tied"]:
        whole = all_gather(comm, [head.T for head in heads], axis=0)  # (v, d)
        for g, of_head in zip(grads, whole, strict=True):
            g["embed"] += of_head
            g["lm_head"] = None
    else:
        for g, of_head in zip(grads, heads, strict=True):
            g["lm_head"] = of_head
    return grads
