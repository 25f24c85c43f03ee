"""One layer of a Llama-style model as a program to trace: prefill of T tokens, decode of one.

The mathematics is that of `transformer_lab`, for one sequence: RMSNorm, RoPE on halves of a head,
grouped-query attention, SwiGLU. Written as a compiler meets it: every scale, mask and rotation is a
node of its own, and heads are split, shared and merged by views.

    T, S      new tokens; positions of keys
    d, f      widths of the residual stream and of the MLP
    H, G, R   query heads, KV heads (groups), H/G
    dh        width of a head
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graph_ir.ops import Array, causal_mask
from graph_ir.sizes import Size
from graph_ir.trace import Tensor, kv_write, rms_norm, rot_pairs, silu, softmax

EPS = 1e-5
THETA = 500_000.0


@dataclass(frozen=True)
class LayerCfg:
    """The sizes of a layer.

    Attributes:
        d: width of the residual stream.
        H: query heads.
        G: KV heads; H/G query heads, next to each other, share one.
        dh: width of a head, even.
        f: width of the MLP.
        eps: ε of RMSNorm.
        theta: θ of RoPE.

    Raises:
        ValueError: no layer has these sizes.
    """

    d: int
    H: int
    G: int
    dh: int
    f: int
    eps: float = EPS
    theta: float = THETA

    def __post_init__(self) -> None:
        for name in ("d", "H", "G", "dh", "f"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it is 1 or more")
        if self.H % self.G:
            raise ValueError(f"{self.H} query heads cannot share {self.G} KV heads equally")
        if self.dh % 2:
            raise ValueError(f"dh is {self.dh}; RoPE turns pairs, so it is even")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parameters' shapes by name, matrices stored (in, out)."""
        q, kv = self.H * self.dh, self.G * self.dh
        return {
            "attn_norm": (self.d,),
            "wq": (self.d, q),
            "wk": (self.d, kv),
            "wv": (self.d, kv),
            "wo": (q, self.d),
            "mlp_norm": (self.d,),
            "w_gate": (self.d, self.f),
            "w_up": (self.d, self.f),
            "w_down": (self.f, self.d),
        }


#: A. Grattafiori et al., "The Llama 3 Herd of Models" (2024), table 3.
LLAMA8B = LayerCfg(4096, 32, 8, 128, 14336)


def layer_params(cfg: LayerCfg, seed: int = 0) -> dict[str, Array]:
    """Random parameters of a layer: nine arrays of float64, matrices stored (in, out).

    A matrix's elements have variance 1/(rows); norms' weights are about 1 but not equal.
    """
    rng = np.random.default_rng(seed)
    params = {}
    for name, shape in cfg.shapes().items():
        numbers = rng.standard_normal(shape)
        params[name] = 1 + 0.1 * numbers if len(shape) == 1 else numbers / math.sqrt(shape[0])
    return params


def rope_tables(cfg: LayerCfg, T: int, pos0: int) -> tuple[Array, Array]:
    """Cosines and sines for positions pos0 … pos0 + T − 1, each (T, 1, dh).

    As wide as a head, both halves alike, so that turning one is x·cos + rot_pairs(x)·sin. The axis
    of 1 is that of heads.
    """
    frequency = cfg.theta ** (-np.arange(0, cfg.dh, 2) / cfg.dh)  # (dh/2,)
    angle = np.arange(pos0, pos0 + T)[:, None] * frequency  # (T, dh/2)
    both = np.concatenate([angle, angle], axis=-1)[:, None, :]  # (T, 1, dh)
    return np.cos(both), np.sin(both)


def prefill_layer(cfg: LayerCfg, T: int, pos0: int = 0) -> Callable[..., Tensor]:
    """A layer on T tokens that attend, causally, to each other.

    Args:
        cfg: sizes.
        T: tokens.
        pos0: position of the first one, for RoPE.

    Returns:
        `fn(params, x)`, x (T, d) to (T, d). Cosines, sines and the mask are constants inside.
    """

    def layer(p: Mapping[str, Tensor], x: Tensor) -> Tensor:
        cos_table, sin_table = rope_tables(cfg, T, pos0)
        cos, sin = x.constant(cos_table, "cos"), x.constant(sin_table, "sin")
        mask = x.constant(causal_mask(T, T), "mask")  # (T, T)
        q, k, v = _heads(p, cfg, x, T, cos, sin)
        return _mlp(p, cfg, _attend(p, cfg, x, q, k, v, T, T, mask))

    return layer


def decode_layer(cfg: LayerCfg, pos: Size = "P") -> Callable[..., Tensor]:
    """A layer on one new token, which attends to itself and to all of the cache.

    Args:
        cfg: sizes.
        pos: where the token's key and value go, a number or a name whose value comes later. The
            cache has no positions behind it: S = pos + 1.

    Returns:
        `fn(params, x, k_cache, v_cache, cos, sin)`, with x (1, d), both caches (G, S, dh), which
        are written in place, cos and sin (1, 1, dh); to (1, d).
    """

    def layer(
        p: Mapping[str, Tensor], x: Tensor, k_cache: Tensor, v_cache: Tensor, cos: Any, sin: Any
    ) -> Tensor:
        S = k_cache.shape[1]
        q, k, v = _heads(p, cfg, x, 1, cos, sin)
        K = kv_write(k_cache, k, pos)  # (G, S, dh)
        V = kv_write(v_cache, v, pos)
        return _mlp(p, cfg, _attend(p, cfg, x, q, K, V, 1, S, None))

    return layer


def _heads(
    p: Mapping[str, Tensor], cfg: LayerCfg, x: Tensor, T: int, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """q (H, T, dh), k and v (G, T, dh): q and k rotated."""
    h = rms_norm(x, p["attn_norm"], cfg.eps)  # (T, d)
    q = (h @ p["wq"]).reshape(T, cfg.H, cfg.dh)
    k = (h @ p["wk"]).reshape(T, cfg.G, cfg.dh)
    v = (h @ p["wv"]).reshape(T, cfg.G, cfg.dh)
    # Rotated before axes are swapped: here an element still lies where the product has put it, so
    # that the product's kernel can rotate what it holds.
    q, k = _rope(q, cos, sin), _rope(k, cos, sin)
    return q.permute(1, 0, 2), k.permute(1, 0, 2), v.permute(1, 0, 2)


def _rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Four operations: x·cos + rot_pairs(x)·sin."""
    return x * cos + rot_pairs(x) * sin


def _attend(
    p: Mapping[str, Tensor],
    cfg: LayerCfg,
    x: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    T: int,
    S: Size,
    mask: Tensor | None,
) -> Tensor:
    """x with what attention adds to it, (T, d); q (H, T, dh), k and v (G, S, dh)."""
    k, v = _shared(cfg, k, S), _shared(cfg, v, S)  # (H, S, dh)
    scores = q @ k.permute(0, 2, 1) * (1 / math.sqrt(cfg.dh))  # (H, T, S)
    if mask is not None:
        scores = scores + mask
    heads = softmax(scores) @ v  # (H, T, dh)
    return x + heads.permute(1, 0, 2).reshape(T, cfg.H * cfg.dh) @ p["wo"]


def _shared(cfg: LayerCfg, heads: Tensor, S: Size) -> Tensor:
    """(G, S, dh) as (H, S, dh): each KV head R times, which copies nothing."""
    R = cfg.H // cfg.G
    grouped = heads.reshape(cfg.G, 1, S, cfg.dh).expand(cfg.G, R, S, cfg.dh)
    return grouped.reshape(cfg.H, S, cfg.dh)


def _mlp(p: Mapping[str, Tensor], cfg: LayerCfg, x: Tensor) -> Tensor:
    """x with what the MLP adds to it, (T, d)."""
    h = rms_norm(x, p["mlp_norm"], cfg.eps)
    return x + (silu(h @ p["w_gate"]) * (h @ p["w_up"])) @ p["w_down"]
