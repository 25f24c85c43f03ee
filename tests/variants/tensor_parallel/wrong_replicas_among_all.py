"""Sums over replicas by an all-reduce of all ranks' wk and wv in the model's width, zeros where a
rank has none: right values, but most of what travels is zeros.

breaks: 7
"""

import copy
from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    summed = copy.deepcopy(list(grads))
    groups = [kv_group_of_device(cfg, comm.n, r) for r in range(comm.n)]
    if sum(map(len, groups)) == cfg.n_kv_heads:
        return summed
    dh = cfg.d_head
    own = [slice(groups[r][0] * dh, (groups[r][-1] + 1) * dh) for r in comm.ranks]
    for index in range(cfg.n_layers):
        for name in ("wk", "wv"):
            wide = [np.zeros((cfg.d_model, cfg.n_kv_heads * dh)) for _ in grads]
            for all_heads, columns, g in zip(wide, own, grads, strict=True):
                all_heads[:, columns] = g["layers"][index][name]
            sums = all_reduce(comm, wide)  # wrong: among a head's holders
            for total, columns, g in zip(sums, own, summed, strict=True):
                g["layers"][index][name] = total[:, columns]
    return summed
