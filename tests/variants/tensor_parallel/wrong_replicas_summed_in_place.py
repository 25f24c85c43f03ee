"""Puts the sums over replicas into the gradients that it was given, which others may still hold.

breaks: 7
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    dh = cfg.d_head
    groups = [kv_group_of_device(cfg, comm.n, r) for r in range(comm.n)]
    summed = list(grads)  # wrong: copies
    for kv in range(cfg.n_kv_heads):
        holders = [r for r in range(comm.n) if kv in groups[r]]
        if len(holders) == 1:
            continue
        here = [
            (g, slice((kv - groups[r][0]) * dh, (kv - groups[r][0] + 1) * dh))
            for r, g in zip(comm.ranks, summed, strict=True)
            if r in holders
        ]
        group = comm.group(holders)
        for index in range(cfg.n_layers):
            layers = [(g["layers"][index], columns) for g, columns in here]
            own = [np.stack([at["wk"][:, c], at["wv"][:, c]]) for at, c in layers]
            for (at, c), total in zip(layers, all_reduce(group, own), strict=True):
                at["wk"][:, c], at["wv"][:, c] = total
    return summed
