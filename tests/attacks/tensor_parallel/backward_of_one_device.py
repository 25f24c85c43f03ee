"""Gathers all parameters, and cuts its part out of the gradients of one device.

test: 7.4
verdict: failed
says: over the budget
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config, backward

AXES = {"wq": 1, "wk": 1, "wv": 1, "wo": 0, "w_gate": 1, "w_up": 1, "w_down": 0}


def whole_params(mine: Params, comm: Communicator) -> Params:
    """All parameters, where no KV head is replicated."""
    layers = [
        layer | {name: all_gather(comm, [layer[name]], axis)[0] for name, axis in AXES.items()}
        for layer in mine["layers"]
    ]
    head = all_gather(comm, [mine["lm_head"]], 1)[0]
    kept = {name: mine[name] for name in ("embed", "final_norm")}
    return kept | {"layers": layers, "lm_head": head}


def tp_backward(
    dev_params: Sequence[Params],
    cfg: Config,
    tokens: np.ndarray,
    dlogits: np.ndarray,
    comm: Communicator,
) -> list[Params]:
    whole = backward(whole_params(dev_params[0], comm), cfg, tokens, dlogits)
    mine = shard_params_tp(whole, cfg, comm.n)[comm.ranks[0]]
    del mine["tied"], mine["kv_groups"]
    return [mine]
