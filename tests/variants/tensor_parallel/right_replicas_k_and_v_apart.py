"""Sums gradients of wk and wv over a KV head's holders in an all-reduce each, layer by layer;
ranks outside of a group make it and go on.
"""

from collections.abc import Sequence

from spmd import Communicator
from transformer_lab import Config


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    summed = [g | {"layers": [dict(at) for at in g["layers"]]} for g in grads]
    held = [kv_group_of_device(cfg, comm.n, r) for r in range(comm.n)]
    shared = {kv: [r for r in range(comm.n) if kv in held[r]] for kv in range(cfg.n_kv_heads)}
    for kv, holders in shared.items():
        mine = [
            (g, held[r].index(kv) * cfg.d_head)
            for r, g in zip(comm.ranks, summed, strict=True)
            if r in holders
        ]
        if len(holders) == 1:
            continue
        group = comm.group(holders)
        if not mine:
            continue
        for index in range(cfg.n_layers):
            for name in ("wk", "wv"):
                parts = [g["layers"][index][name][:, c : c + cfg.d_head] for g, c in mine]
                for (g, c), total in zip(mine, all_reduce(group, parts), strict=True):
                    changed = g["layers"][index][name].copy()
                    changed[:, c : c + cfg.d_head] = total
                    g["layers"][index][name] = changed
    return summed
