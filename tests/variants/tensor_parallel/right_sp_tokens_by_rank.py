"""Sequence parallelism that cuts the embedded sequence, gathers with the positions in front, and
keeps a layer's two blocks in one loop.
"""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator
from transformer_lab import Config, rms_norm


def tp_forward_sp(
    dev_params: Sequence[Params], cfg: Config, tokens: np.ndarray, comm: Communicator
) -> np.ndarray:
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    n, T = comm.n, tokens.shape[1]
    if T % n:
        raise ValueError(f"n = {n} does not divide T = {T}")
    # (T/n, B, d): positions in front, so that parts lie one behind the other.
    xs = [
        np.ascontiguousarray(p["embed"][tokens.T[r * T // n : (r + 1) * T // n]])
        for r, p in zip(comm.ranks, dev_params, strict=True)
    ]

    def gathered(weights: list[np.ndarray]) -> list[np.ndarray]:
        parts = [rms_norm(x, w, cfg.norm_eps).ravel() for x, w in zip(xs, weights, strict=True)]
        wholes = comm.all_gather(parts)
        return [h.reshape(T, -1, cfg.d_model).swapaxes(0, 1) for h in wholes]

    for i in range(cfg.n_layers):
        for norm in ("attn_norm", "mlp_norm"):
            hs = gathered([p["layers"][i][norm] for p in dev_params])
            partial = [
                attention_of_rank(p, cfg, n, r, i, h)
                if norm == "attn_norm"
                else mlp_of_rank(p, i, h)
                for r, p, h in zip(comm.ranks, dev_params, hs, strict=True)
            ]
            sums = comm.reduce_scatter([y.swapaxes(0, 1).ravel() for y in partial])
            for x, s in zip(xs, sums, strict=True):
                x += s.reshape(x.shape)
    hs = gathered([p["final_norm"] for p in dev_params])
    logits = [h @ p["lm_head"] for h, p in zip(hs, dev_params, strict=True)]
    return all_gather(comm, logits, axis=-1)[0]
