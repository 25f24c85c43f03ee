"""Gathers largest logits and tokens apart, tokens as whole numbers, and chooses sequence by
sequence with max over pairs.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config


def tp_generate(
    dev_params: Sequence[Params], cfg: Config, prompt: np.ndarray, steps: int, comm: Communicator
) -> np.ndarray:
    B, _ = prompt.shape
    caches = tp_caches(cfg, dev_params, B)
    chosen = np.zeros((B, steps), dtype=np.int64)
    tokens = prompt
    for step in range(steps):
        local = tp_forward(dev_params, cfg, tokens, comm, caches=caches, gather_logits=False)
        lasts = [logits[:, -1, :] for logits in local]
        maxima = comm.all_gather([last.max(axis=-1) for last in lasts], label="maxima")[0]
        places = [
            np.array([np.flatnonzero(row == row.max())[0] for row in last], dtype=np.int64)
            + r * cfg.vocab // comm.n
            for last, r in zip(lasts, comm.ranks, strict=True)
        ]
        numbers = comm.all_gather(places, label="tokens")[0]
        for b in range(B):
            pairs = zip(maxima[b::B].tolist(), (-numbers[b::B]).tolist(), strict=True)
            chosen[b, step] = -max(pairs)[1]
        tokens = chosen[:, step : step + 1]
    return chosen
