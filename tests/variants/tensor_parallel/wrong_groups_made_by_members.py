"""A group is made by the ranks in it alone: on real ranks, the others are waited for.

breaks: 7
"""

from collections.abc import Sequence

from spmd import Communicator
from transformer_lab import Config


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    dh = cfg.d_head
    held = [kv_group_of_device(cfg, comm.n, r) for r in range(comm.n)]
    summed = [
        {**g, "layers": [{**w, "wk": w["wk"].copy(), "wv": w["wv"].copy()} for w in g["layers"]]}
        for g in grads
    ]
    for g in range(cfg.n_kv_heads):
        holders = [r for r in range(comm.n) if g in held[r]]
        if len(holders) == 1 or not set(holders) & set(comm.ranks):  # wrong: the second half
            continue
        group = comm.group(holders)
        own = [
            (tree, held[r].index(g) * dh)
            for tree, r in zip(summed, comm.ranks, strict=True)
            if r in holders
        ]
        for index in range(cfg.n_layers):
            for name in ("wk", "wv"):
                parts = [tree["layers"][index][name][:, at : at + dh] for tree, at in own]
                for (tree, at), total in zip(own, all_reduce(group, parts), strict=True):
                    tree["layers"][index][name][:, at : at + dh] = total
    return summed
