"""Sends the number of a column of the rank's own for the number of a token.

breaks: 5
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config


def tp_generate(
    dev_params: Sequence[Params], cfg: Config, prompt: np.ndarray, steps: int, comm: Communicator
) -> np.ndarray:
    B = prompt.shape[0]
    caches = tp_caches(cfg, dev_params, B)
    tokens, chosen = prompt, np.empty((B, 0), dtype=np.int64)
    for _ in range(steps):
        local = tp_forward(dev_params, cfg, tokens, comm, caches, gather_logits=False)
        best = []
        for logits in local:
            last = logits[:, -1]  # (B, v/n)
            token = last.argmax(axis=1)  # wrong: counted from the rank's first token
            best.append(np.stack([last.max(axis=1), token]))  # (2, B); tokens are exact as floats
        # (n, 2, B), the same at every rank: one of those held here will do.
        largest, token = all_gather(comm, [pair[None] for pair in best], axis=0)[0].swapaxes(0, 1)
        winner = largest.argmax(axis=0)  # the first of equal ones, so that of the lowest tokens
        tokens = np.take_along_axis(token, winner[None], axis=0).T.astype(np.int64)  # (B, 1)
        chosen = np.concatenate([chosen, tokens], axis=1)
    return chosen
