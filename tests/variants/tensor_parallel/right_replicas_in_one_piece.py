"""Sums a replicated KV head's gradients of all layers in one all-reduce, and only where the head
is held.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    dh = cfg.d_head
    held = [kv_group_of_device(cfg, comm.n, r) for r in range(comm.n)]
    summed = []
    for g in grads:
        layers = [{**at, "wk": np.array(at["wk"]), "wv": np.array(at["wv"])} for at in g["layers"]]
        summed.append({**g, "layers": layers})
    for kv in range(cfg.n_kv_heads):
        holders = [r for r in range(comm.n) if kv in held[r]]
        group = comm.group(holders)
        if len(holders) < 2 or not group.ranks:
            continue
        views, own = [], []
        for r, g in zip(comm.ranks, summed, strict=True):
            if r not in holders:
                continue
            at = held[r].index(kv) * dh
            views.append([layer[w][:, at : at + dh] for layer in g["layers"] for w in ("wk", "wv")])
            own.append(np.concatenate([view.ravel() for view in views[-1]]))
        for total, places in zip(group.all_reduce(own, label="replicas"), views, strict=True):
            for piece, view in zip(np.split(total, len(places)), places, strict=True):
                view[...] = piece.reshape(view.shape)
    return summed
