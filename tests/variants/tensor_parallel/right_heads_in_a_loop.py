"""Attends with one query head after the other and its KV head, and adds up what comes of it."""

import numpy as np
from transformer_lab import (
    Config,
    KVCache,
    apply_rope,
    attention_core,
    rope_angles,
)


def kv_head_of_query(p: Params, cfg: Config, n: int, r: int) -> list[int]:
    heads = np.arange(cfg.n_heads).reshape(n, -1)[r]
    return [p["kv_groups"].index(h * cfg.n_kv_heads // cfg.n_heads) for h in heads.tolist()]


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
    layer, dh = p["layers"][index], cfg.d_head
    B, T, _ = h.shape
    cos, sin = rope_angles(np.arange(T) + pos0, dh, cfg.rope_theta)
    k = apply_rope((h @ layer["wk"]).reshape(B, T, -1, dh), cos, sin)
    v = (h @ layer["wv"]).reshape(B, T, -1, dh)
    if cache is not None:
        cache.write(index, k, v)
        k, v = cache.read(index, pos0 + T)
    total = np.zeros_like(h)
    for j, kv in enumerate(kv_head_of_query(p, cfg, n, r)):
        own = slice(j * dh, (j + 1) * dh)
        q = apply_rope((h @ layer["wq"][:, own])[:, :, None], cos, sin)  # (B, T, 1, dh)
        out = attention_core(q, k[:, :, kv : kv + 1], v[:, :, kv : kv + 1], pos0)
        total += out @ layer["wo"][own]
    return total
