"""Computes attention and MLP of a rank with torch, in float64, by its own functions."""

import numpy as np
import torch
from transformer_lab import Config, KVCache, apply_rope, rope_angles


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
        k, v = (np.array(x) for x in cache.read(index, pos0 + T))
    used = kv_head_of_query(p, cfg, n, r)
    heads = [torch.tensor(x).transpose(1, 2) for x in (q, k[:, :, used], v[:, :, used])]
    seen = torch.arange(pos0 + T) <= torch.arange(pos0, pos0 + T)[:, None]  # (T, S)
    out = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=seen)
    return (out.transpose(1, 2).reshape(B, T, -1) @ torch.tensor(layer["wo"])).numpy()


def mlp_of_rank(p: Params, index: int, h: np.ndarray) -> np.ndarray:
    x = torch.tensor(h)
    gate, up, down = (torch.tensor(p["layers"][index][w]) for w in ("w_gate", "w_up", "w_down"))
    return ((torch.nn.functional.silu(x @ gate) * (x @ up)) @ down).numpy()
