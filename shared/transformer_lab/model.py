"""The forward of the whole model, on one device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array
from numpy.typing import NDArray

from transformer_lab.arrays import Array, like, namespace
from transformer_lab.cache import KVCache
from transformer_lab.config import Config
from transformer_lab.ops import apply_rope, attention_core, rms_norm, rope_angles, silu
from transformer_lab.params import check_params


def forward(
    params: Mapping[str, Any], cfg: Config, tokens: Any, cache: KVCache | None = None
) -> Array:
    """Logits of the next token, at each position.

    In each layer
        x += attention(rms_norm(x)) wo
        x += (silu(h w_gate) · (h w_up)) w_down        with h = rms_norm(x)
    (H. Touvron et al., "LLaMA" (2023), section 2.2; grouped-query attention since Llama 2.)

    Args:
        params: see `transformer_lab.params`: float64 numpy arrays, or torch tensors.
        cfg: sizes.
        tokens: (B, T) whole numbers below cfg.vocab: lists, a numpy array or a torch tensor.
        cache: holds K and V of the positions before; `tokens` come behind them, and are added.
            None: `tokens` are the whole sequence. For torch tensors make it of their library,
            dtype and device: `KVCache(cfg, batch, like=params["embed"])`.

    Returns:
        (B, T, vocab), of the library, dtype and device of the parameters.

    Raises:
        ValueError: parameters, tokens or cache do not fit; the message says which and how.
    """
    check_params(params, cfg)
    pos0 = 0 if cache is None else cache.length
    ids = checked_tokens(tokens, cfg, pos0)
    T = ids.shape[1]
    x = embedded(params["embed"], ids)  # (B, T, d)
    angles = rope_angles(np.arange(pos0, pos0 + T), cfg.d_head, cfg.rope_theta)
    cos, sin = (like(value, x) for value in angles)  # once, not in each layer: they may travel far
    for index, layer in enumerate(params["layers"]):
        x = x + attention(layer, cfg, index, x, cos, sin, pos0, cache)
        x = x + mlp(layer, cfg, x)
    if cache is not None:
        cache.length += T
    return rms_norm(x, params["final_norm"], cfg.norm_eps) @ head(params)


def embedded(embed: Array, ids: NDArray[np.integer[Any]]) -> Array:
    """The rows of `embed` (vocab, d) that the tokens (B, T) are looked up as: (B, T, d)."""
    xp = namespace(embed)
    return embed[ids if xp is np else xp.asarray(ids, dtype=xp.int64, device=device(embed))]


def head(params: Mapping[str, Any]) -> Array:
    """The matrix (d, vocab) that makes logits: lm_head, or the embedding where that is tied."""
    tied = params["lm_head"] is None
    return params["embed"].T if tied else params["lm_head"]


def attention(
    layer: Mapping[str, Array],
    cfg: Config,
    index: int,
    x: Array,
    cos: Array,
    sin: Array,
    pos0: int,
    cache: KVCache | None,
) -> Array:
    """What the attention of a layer adds to x: (B, T, d)."""
    xp = namespace(x)
    B, T, _ = x.shape
    h = rms_norm(x, layer["attn_norm"], cfg.norm_eps)
    q = xp.reshape(h @ layer["wq"], (B, T, cfg.n_heads, cfg.d_head))
    k = xp.reshape(h @ layer["wk"], (B, T, cfg.n_kv_heads, cfg.d_head))
    v = xp.reshape(h @ layer["wv"], (B, T, cfg.n_kv_heads, cfg.d_head))
    q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
    if cache is not None:
        cache.write(index, k, v)
        k, v = cache.read(index, pos0 + T)  # (B, pos0 + T, G, dh) each
    return attention_core(q, k, v, pos0) @ layer["wo"]


def mlp(layer: Mapping[str, Array], cfg: Config, x: Array) -> Array:
    """What the MLP of a layer adds to x: (B, T, d)."""
    h = rms_norm(x, layer["mlp_norm"], cfg.norm_eps)
    return (silu(h @ layer["w_gate"]) * (h @ layer["w_up"])) @ layer["w_down"]


def checked_tokens(tokens: Any, cfg: Config, pos0: int) -> NDArray[np.integer[Any]]:
    """(B, T) tokens as a numpy array; raises a `ValueError` unless the model can look them up."""
    ids = tokens.numpy(force=True) if is_torch_array(tokens) else np.asarray(tokens)
    if ids.ndim != 2:
        raise ValueError(
            f"tokens has shape {ids.shape}; it needs two dimensions, batch and positions"
        )
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"tokens is of {ids.dtype}; give whole numbers")
    for where in np.argwhere((ids < 0) | (ids >= cfg.vocab))[:1].tolist():
        raise ValueError(
            f"tokens{where} is {ids[tuple(where)]}; tokens are numbered from 0 to {cfg.vocab - 1}"
        )
    if pos0 + ids.shape[1] > cfg.max_seq:
        raise ValueError(
            f"{pos0 + ids.shape[1]} positions are asked for; the model has max_seq {cfg.max_seq}"
        )
    return ids
