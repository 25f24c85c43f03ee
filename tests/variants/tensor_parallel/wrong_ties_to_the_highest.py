"""Of equal logits on several ranks, chooses the token with the highest number.

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
        for r, logits in zip(comm.ranks, local, strict=True):
            last = logits[:, -1]  # (B, v/n)
            token = r * last.shape[1] + last.argmax(axis=1)
            best.append(np.stack([last.max(axis=1), token]))  # (2, B); tokens are exact as floats
        # (n, 2, B), the same at every rank: one of those held here will do.
        largest, token = all_gather(comm, [pair[None] for pair in best], axis=0)[0].swapaxes(0, 1)
        winner = len(largest) - 1 - largest[::-1].argmax(axis=0)  # wrong: the first of equal ones
        tokens = np.take_along_axis(token, winner[None], axis=0).T.astype(np.int64)  # (B, 1)
        chosen = np.concatenate([chosen, tokens], axis=1)
    return chosen
