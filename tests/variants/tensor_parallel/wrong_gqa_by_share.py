"""Has query head j of a rank use KV head j // (heads / KV heads) of the rank, which is not so
where a rank's query heads begin or end within a group.

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
    cos, sin = rope_angles(np.arange(pos0, pos0 + T), cfg.d_head, cfg.rope_theta)
    q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
    if cache is not None:
        cache.write(index, k, v)
        k, v = cache.read(index, pos0 + T)
    # wrong: what kv_head_of_query says
    return attention_core(q, k, v, pos0) @ layer["wo"]
