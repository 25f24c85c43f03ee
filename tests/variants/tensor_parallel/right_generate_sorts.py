"""Sends all that a rank chooses for a sequence as one row (maximum, token), and sorts the rows of
all ranks.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config


def tp_generate(
    dev_params: Sequence[Params], cfg: Config, prompt: np.ndarray, steps: int, comm: Communicator
) -> np.ndarray:
    caches = tp_caches(cfg, dev_params, len(prompt))
    tokens, chosen = prompt, []
    for _ in range(steps):
        rows = []
        for r, logits in zip(
            comm.ranks,
            tp_forward(dev_params, cfg, tokens, comm, caches, gather_logits=False),
            strict=True,
        ):
            best = np.argmax(logits[:, -1], axis=-1)  # (B,)
            value = np.take_along_axis(logits[:, -1], best[:, None], axis=-1)[:, 0]
            rows.append(np.stack([value, best + r * (cfg.vocab // comm.n)], axis=-1))  # (B, 2)
        every = comm.all_gather([pairs.ravel() for pairs in rows])[0].reshape(comm.n, -1, 2)
        order = np.lexsort((every[..., 1], -every[..., 0]), axis=0)  # by value, then by token
        tokens = np.array(
            [[int(every[order[0, b], b, 1])] for b in range(len(prompt))], dtype=np.int64
        )
        chosen.append(tokens)
    return np.hstack(chosen) if chosen else np.zeros((len(prompt), 0), dtype=np.int64)
