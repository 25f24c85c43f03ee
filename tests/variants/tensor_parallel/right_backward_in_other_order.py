"""The backward keeps normed inputs, too, and adds up the embeddings' gradients by a matrix of ones
and zeros.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config, rms_norm, rms_norm_backward


def tp_backward(
    dev_params: Sequence[Params],
    cfg: Config,
    tokens: np.ndarray,
    dlogits: np.ndarray,
    comm: Communicator,
) -> list[Params]:
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    n, eps, v = comm.n, cfg.norm_eps, cfg.vocab // comm.n
    places = np.eye(cfg.vocab)[tokens.ravel()]  # (BT, v)
    xs = [p["embed"][tokens] for p in dev_params]
    kept = []  # (name of the norm, layer, x, h) of each block, lists of the held ranks
    for i in range(cfg.n_layers):
        for norm in ("attn_norm", "mlp_norm"):
            hs = [
                rms_norm(x, p["layers"][i][norm], eps) for x, p in zip(xs, dev_params, strict=True)
            ]
            kept.append((norm, i, xs, hs))
            if norm == "attn_norm":
                own = [
                    attention_of_rank(p, cfg, n, r, i, h)
                    for r, p, h in zip(comm.ranks, dev_params, hs, strict=True)
                ]
            else:
                own = [mlp_of_rank(p, i, h) for p, h in zip(dev_params, hs, strict=True)]
            xs = [x + s for x, s in zip(xs, all_reduce(comm, own), strict=True)]

    grads, own, heads = [], [], []
    for r, p, x in zip(comm.ranks, dev_params, xs, strict=True):
        mine = dlogits[:, :, r * v : (r + 1) * v]
        h = rms_norm(x, p["final_norm"], eps)
        heads.append(np.einsum("btd,btv->dv", h, mine))
        own.append(np.einsum("btv,dv->btd", mine, p["lm_head"]))
        grads.append({"layers": [{} for _ in p["layers"]]})
    dxs = []
    for g, p, x, dh in zip(grads, dev_params, xs, all_reduce(comm, own), strict=True):
        dx, g["final_norm"] = rms_norm_backward(dh, x, p["final_norm"], eps)
        dxs.append(dx)

    for norm, i, stored, hs in reversed(kept):
        own = []
        for r, p, g, h, dx in zip(comm.ranks, dev_params, grads, hs, dxs, strict=True):
            if norm == "attn_norm":
                dh, of_weights = attention_backward_of_rank(p, cfg, n, r, i, h, dx)
            else:
                dh, of_weights = mlp_backward_of_rank(p, i, h, dx)
            g["layers"][i].update(of_weights)
            own.append(dh)
        new = []
        for p, g, x, dx, dh in zip(
            dev_params, grads, stored, dxs, all_reduce(comm, own), strict=True
        ):
            through, g["layers"][i][norm] = rms_norm_backward(dh, x, p["layers"][i][norm], eps)
            new.append(dx + through)
        dxs = new

    grads = list(sum_over_replicas(comm, cfg, grads))
    for g, dx in zip(grads, dxs, strict=True):
        g["embed"] = places.T @ dx.reshape(-1, cfg.d_model)
    if any(p["tied"] for p in dev_params):
        whole = all_gather(comm, heads, axis=1)  # (d, v)
        return [
            g | {"embed": g["embed"] + head.T, "lm_head": None}
            for g, head in zip(grads, whole, strict=True)
        ]
    return [g | {"lm_head": head} for g, head in zip(grads, heads, strict=True)]
