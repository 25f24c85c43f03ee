"""Hands every query head a KV head of its own, also where attention_core would find it; q, k and v
come out of one product.
"""

import numpy as np
from transformer_lab import (
    Config,
    KVCache,
    apply_rope,
    attention_core,
    rope_angles,
)


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
    heads, groups = cfg.n_heads // n, len(p["kv_groups"])
    qkv = h @ np.concatenate([layer["wq"], layer["wk"], layer["wv"]], axis=1)
    q, k, v = np.split(qkv.reshape(B, T, -1, cfg.d_head), [heads, heads + groups], axis=2)
    cos, sin = rope_angles(np.arange(pos0, pos0 + T), cfg.d_head, cfg.rope_theta)
    k, q = apply_rope(k, cos, sin), apply_rope(q, cos, sin)
    if cache is not None:
        cache.write(index, k, v)
        k, v = cache.read(index, pos0 + T)
    used = kv_head_of_query(p, cfg, n, r)
    return attention_core(q, np.take(k, used, 2), np.take(v, used, 2), pos0) @ layer["wo"]
