"""Rotates as if new tokens always began at position 0.

breaks: 4, 5
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
    cos, sin = rope_angles(np.arange(T), cfg.d_head, cfg.rope_theta)  # wrong: from pos0
    q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
    if cache is not None:
        cache.write(index, k, v)
        k, v = cache.read(index, pos0 + T)
    used = kv_head_of_query(p, cfg, n, r)
    share = len(used) // k.shape[2]
    if used != [j // share for j in range(len(used))]:
        k, v = k[:, :, used], v[:, :, used]
    return attention_core(q, k, v, pos0) @ layer["wo"]
