"""Gathers all logits at each rank to choose a token, where two numbers of each rank would do.

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
        # wrong: (maximum, token) of each rank are to travel
        logits = tp_forward(dev_params, cfg, tokens, comm, caches)
        tokens = logits[:, -1].argmax(axis=1)[:, None]
        chosen = np.concatenate([chosen, tokens], axis=1)
    return chosen
