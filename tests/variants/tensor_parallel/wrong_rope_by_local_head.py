"""Rotates by the number of the head at the rank, where it is by the position.

breaks: 4, 5, 6, 7
"""

import numpy as np
from transformer_lab import Config, KVCache, apply_rope, attention_core, rope_angles


def attention_of_rank(
    p: Params,
    cfg: Config,
    n: int,
    r: int,
    index: int,
    h: np.ndarray,
    pos0: int = 0,
    cache: KVCache | None = None,
) -> np.ndarray:
    layer = p["layers"][index]
    B, T, _ = h.shape
    q, k, v = (
        (h @ layer[name]).reshape(B, T, -1, cfg.d_head) for name in ("wq", "wk", "wv")
    )  # (B, T, heads of this rank, dh)
    turned = []
    for x in (q, k):
        # wrong: position
        cos, sin = rope_angles(np.arange(x.shape[2]), cfg.d_head, cfg.rope_theta)
        turned.append(apply_rope(x.swapaxes(1, 2), cos, sin).swapaxes(1, 2))
    q, k = turned
    if cache is not None:
        cache.write(index, k, v)
        k, v = cache.read(index, pos0 + T)
    used = kv_head_of_query(p, cfg, n, r)
    share = len(used) // k.shape[2]
    if used != [j // share for j in range(len(used))]:
        k, v = k[:, :, used], v[:, :, used]
    return attention_core(q, k, v, pos0) @ layer["wo"]
