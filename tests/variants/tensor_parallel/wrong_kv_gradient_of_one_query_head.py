"""Adds up the gradients of a KV head by an index that names it several times: numpy keeps the
last.

breaks: 7
"""

import numpy as np
from transformer_lab import (
    Config,
    apply_rope,
    apply_rope_backward,
    attention_core,
    attention_core_backward,
    rope_angles,
)


def attention_backward_of_rank(
    p: Params, cfg: Config, n: int, r: int, index: int, h: np.ndarray, dy: np.ndarray
) -> tuple[np.ndarray, Params]:
    layer = p["layers"][index]
    B, T, _ = h.shape
    q, k, v = ((h @ layer[name]).reshape(B, T, -1, cfg.d_head) for name in ("wq", "wk", "wv"))
    cos, sin = rope_angles(np.arange(T), cfg.d_head, cfg.rope_theta)
    q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
    used = kv_head_of_query(p, cfg, n, r)
    heads = attention_core(q, k[:, :, used], v[:, :, used], 0)  # (B, T, heads·dh)
    dheads = dy @ layer["wo"].T
    dq, dk_used, dv_used = attention_core_backward(dheads, q, k[:, :, used], v[:, :, used], 0)
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    dk[:, :, used] += dk_used  # wrong: the sum over all query heads that used it
    dv[:, :, used] += dv_used
    dq, dk = apply_rope_backward(dq, cos, sin), apply_rope_backward(dk, cos, sin)
    grads = {"wo": _weight_gradient(heads, dy)}
    dh = np.zeros_like(h)
    for name, d in (("wq", dq), ("wk", dk), ("wv", dv)):
        d = d.reshape(B, T, -1)
        grads[name] = _weight_gradient(h, d)
        dh += d @ layer[name].T
    return dh, grads
