"""The gradients of the whole model, on one device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import device

from transformer_lab.arrays import Array, alike, kind, like, namespace
from transformer_lab.backward import (
    apply_rope_backward,
    attention_core_backward,
    rms_norm_backward,
    silu_backward,
)
from transformer_lab.config import Config
from transformer_lab.model import attention, checked_tokens, embedded, head, mlp
from transformer_lab.ops import apply_rope, attention_core, rms_norm, rope_angles, silu
from transformer_lab.params import Params, check_params


def backward(params: Mapping[str, Any], cfg: Config, tokens: Any, dlogits: Array) -> Params:
    """Gradients of a loss with regard to all parameters, from its gradient at the logits.

    For y = x w: dx = dy wᵀ and dw = xᵀ dy, summed over batch and positions. A residual x + f(x)
    hands on dy + f'ᵀ dy. The forward keeps only what goes into each half of a layer; the rest is
    computed anew where it is needed (T. Chen et al., "Training Deep Nets with Sublinear Memory
    Cost", 2016).

    Args:
        params: as for `forward`.
        cfg: sizes.
        tokens: (B, T) as for `forward`, the whole sequence.
        dlogits: (B, T, vocab), of the library, dtype and device of the parameters.

    Returns:
        A dictionary like `params`. lm_head is None where it is tied: embed has both gradients then,
        that as a table and that as a head.

    Raises:
        ValueError: parameters, tokens or dlogits do not fit.
    """
    check_params(params, cfg)
    ids = checked_tokens(tokens, cfg, 0)
    B, T = ids.shape
    _check_dlogits(dlogits, params, (B, T, cfg.vocab))
    x = embedded(params["embed"], ids)  # (B, T, d)
    angles = rope_angles(np.arange(T), cfg.d_head, cfg.rope_theta)
    cos, sin = (like(value, x) for value in angles)

    before: list[tuple[Array, Array]] = []  # of each layer, what goes into attention and MLP
    for index, layer in enumerate(params["layers"]):
        middle = x + attention(layer, cfg, index, x, cos, sin, 0, None)
        before.append((x, middle))
        x = middle + mlp(layer, cfg, middle)

    h = rms_norm(x, params["final_norm"], cfg.norm_eps)
    dh, dhead = _product_backward(dlogits, h, head(params))
    dx, dfinal_norm = rms_norm_backward(dh, x, params["final_norm"], cfg.norm_eps)
    layers: list[Params] = []
    for layer, (x, middle) in zip(reversed(params["layers"]), reversed(before), strict=True):
        dmiddle, of_mlp = _mlp_backward(dx, layer, cfg, middle)
        dmiddle = dx + dmiddle
        dx, of_attention = _attention_backward(dmiddle, layer, cfg, x, cos, sin)
        dx = dmiddle + dx
        layers.insert(0, of_attention | of_mlp)

    dembed = _lookup_backward(dx, ids, params["embed"])
    tied = params["lm_head"] is None
    return {
        "embed": dembed + dhead.T if tied else dembed,
        "final_norm": dfinal_norm,
        "lm_head": None if tied else dhead,
        "layers": layers,
    }


def _attention_backward(
    dout: Array, layer: Mapping[str, Array], cfg: Config, x: Array, cos: Array, sin: Array
) -> tuple[Array, Params]:
    """Gradients of `model.attention`: that of x (B, T, d), and those of its parameters."""
    xp = namespace(x)
    B, T, _ = x.shape
    h = rms_norm(x, layer["attn_norm"], cfg.norm_eps)  # (B, T, d)
    q = xp.reshape(h @ layer["wq"], (B, T, cfg.n_heads, cfg.d_head))
    k = xp.reshape(h @ layer["wk"], (B, T, cfg.n_kv_heads, cfg.d_head))
    v = xp.reshape(h @ layer["wv"], (B, T, cfg.n_kv_heads, cfg.d_head))
    q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)

    da, dwo = _product_backward(dout, attention_core(q, k, v, 0), layer["wo"])
    dq, dk, dv = attention_core_backward(da, q, k, v, 0)
    dq, dk = apply_rope_backward(dq, cos, sin), apply_rope_backward(dk, cos, sin)
    grads = {"wo": dwo}
    dh = xp.zeros_like(h)
    for name, dheads in (("wq", dq), ("wk", dk), ("wv", dv)):
        dy = xp.reshape(dheads, (B, T, layer[name].shape[1]))
        part, grads[name] = _product_backward(dy, h, layer[name])
        dh = dh + part
    dx, grads["attn_norm"] = rms_norm_backward(dh, x, layer["attn_norm"], cfg.norm_eps)
    return dx, grads


def _mlp_backward(
    dout: Array, layer: Mapping[str, Array], cfg: Config, x: Array
) -> tuple[Array, Params]:
    """Gradients of `model.mlp`: that of x (B, T, d), and those of its parameters."""
    h = rms_norm(x, layer["mlp_norm"], cfg.norm_eps)  # (B, T, d)
    gate, up = h @ layer["w_gate"], h @ layer["w_up"]  # (B, T, f) each
    gated = silu(gate)

    dinner, dw_down = _product_backward(dout, gated * up, layer["w_down"])
    dh_gate, dw_gate = _product_backward(silu_backward(dinner * up, gate), h, layer["w_gate"])
    dh_up, dw_up = _product_backward(dinner * gated, h, layer["w_up"])
    dx, dmlp_norm = rms_norm_backward(dh_gate + dh_up, x, layer["mlp_norm"], cfg.norm_eps)
    return dx, {"mlp_norm": dmlp_norm, "w_gate": dw_gate, "w_up": dw_up, "w_down": dw_down}


def _product_backward(dy: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """Gradients of y = x w, with x (B, T, in) and w (in, out): those of x and of w."""
    xp = namespace(dy, x, w)
    rows = x.shape[0] * x.shape[1]
    flat_x, flat_dy = xp.reshape(x, (rows, x.shape[2])), xp.reshape(dy, (rows, dy.shape[2]))
    return dy @ w.T, flat_x.T @ flat_dy


def _lookup_backward(dx: Array, ids: np.ndarray[Any, Any], embed: Array) -> Array:
    """Gradient of looking up: a row of the table gets the sum over all places of its token."""
    xp = namespace(dx)
    # Looking up is the product of one-hot rows with the table. (Adding in place, one row after the
    # other, has a name of its own in each library, and an order of its own on a GPU.)
    one_hot = ids.reshape(-1)[None, :] == np.arange(embed.shape[0])[:, None]  # (vocab, B·T)
    hot = xp.asarray(one_hot, dtype=dx.dtype, device=device(dx))
    return hot @ xp.reshape(dx, (ids.size, dx.shape[2]))


def _check_dlogits(dlogits: Array, params: Mapping[str, Any], shape: tuple[int, ...]) -> None:
    if dlogits.shape != shape:
        raise ValueError(f"dlogits has shape {tuple(dlogits.shape)}; that of the logits is {shape}")
    if not alike(dlogits, params["embed"]):
        raise ValueError(
            f"dlogits is {kind(dlogits)}, the parameters are {kind(params['embed'])}; "
            "they need one library, one dtype and one device"
        )
