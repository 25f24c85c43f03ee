"""Sums the gradients of KV heads over all ranks where there are more of these than KV heads,
though they are of different heads.

breaks: 7
"""

import copy
from collections.abc import Sequence

from spmd import Communicator
from transformer_lab import Config


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    summed = copy.deepcopy(list(grads))
    if comm.n <= cfg.n_kv_heads:
        return summed
    for index in range(cfg.n_layers):
        for name in ("wk", "wv"):
            # wrong: over the head's holders
            sums = all_reduce(comm, [g["layers"][index][name] for g in grads])
            for g, total in zip(summed, sums, strict=True):
                g["layers"][index][name] = total
    return summed
