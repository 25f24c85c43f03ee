"""The parts of a layer that are no matrix product: norm, activation, rotation, attention.

They take numpy arrays or torch tensors, all of one dtype and on one device, compute in that dtype,
and return the same.
"""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import device

from transformer_lab.arrays import Array, like, namespace


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """y = x · (mean(x²) + ε)^(−1/2) · weight, over the last axis.

    Source: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4.

    Args:
        x: (…, d).
        weight: (d,).
        eps: ε, inside the root.

    Returns:
        (…, d).

    Raises:
        ValueError: `weight` has another width.
    """
    check_norm(x, weight)
    xp = namespace(x, weight)
    scale = 1 / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + eps)  # (…, 1)
    return x * scale * weight


def silu(x: Array) -> Array:
    """x · σ(x), element by element, with the logistic function σ(x) = 1/(1 + e^(−x)).

    Source: N. Shazeer, "GLU Variants Improve Transformer" (2020), where it is called Swish₁.
    """
    return x * logistic(x)


def logistic(x: Array) -> Array:
    """σ(x) = 1/(1 + e^(−x)), element by element."""
    # exp(−log(1 + e^(−x))): nothing overflows, and small values keep all their digits.
    xp = namespace(x)
    return xp.exp(-xp.logaddexp(0, -x))


def rope_angles(pos: Array, dh: int, theta: float) -> tuple[Array, Array]:
    """Cosines and sines of the angles by which RoPE turns the heads at positions `pos`.

    Pair i of a head is turned by pos · θ^(−2i/dh).
    Source: J. Su et al., "RoFormer" (2021), section 3.2.2.

    Args:
        pos: (T,) positions, a numpy array.
        dh: width of a head.
        theta: θ.

    Returns:
        cos, sin: (T, dh/2) each, numpy arrays of float64 whatever the model's dtype: 16 bits do not
            tell far positions apart. `apply_rope` brings them to the heads' dtype and device.

    Raises:
        ValueError: `dh` is odd, `theta` is not positive, or `pos` has another number of dimensions.
    """
    pos = np.asarray(pos)
    if pos.ndim != 1:
        raise ValueError(f"pos has shape {pos.shape}; it needs one dimension")
    if dh < 2 or dh % 2:
        raise ValueError(f"dh is {dh}; it is an even number, 2 or more")
    if not theta > 0:
        raise ValueError(f"theta is {theta}; it is more than 0")
    frequency = theta ** (-np.arange(0, dh, 2) / dh)  # (dh/2,)
    angle = pos[:, None] * frequency  # (T, dh/2)
    return np.cos(angle), np.sin(angle)


def apply_rope(x: Array, cos: Array, sin: Array) -> Array:
    """Turns each pair of elements of each head by its position's angle.

    Element i and element i + dh/2 are a pair, as in Hugging Face's models. (The paper, and Meta's
    own code, pair neighbours; one is the other with the columns of wq and wk in another order.)

    Args:
        x: (B, T, heads, dh).
        cos, sin: (T, dh/2) each, of `rope_angles`, or already as x is.

    Returns:
        (B, T, heads, dh).

    Raises:
        ValueError: shapes do not fit.
    """
    _check_heads(x, "x")
    _, T, _, dh = x.shape
    for name, value in (("cos", cos), ("sin", sin)):
        if value.shape != (T, dh // 2):
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}; x of shape {tuple(x.shape)} needs "
                f"{(T, dh // 2)}"
            )
    xp = namespace(x)
    cos, sin = like(cos, x)[:, None, :], like(sin, x)[:, None, :]  # (T, 1, dh/2): all heads alike
    first, second = x[..., : dh // 2], x[..., dh // 2 :]  # (B, T, heads, dh/2) each
    return xp.concat([first * cos - second * sin, first * sin + second * cos], axis=-1)


def attention_core(q: Array, K: Array, V: Array, pos0: int) -> Array:
    """Causal attention: softmax(q Kᵀ/√dh + mask) V, query heads in groups that share K and V.

    Query i sits at position `pos0` + i, key j at position j; a query sees the keys up to its own
    position. Query head h uses KV head h // (H/G).

    Args:
        q: (B, T, H, dh).
        K, V: (B, S, G, dh) each, with S ≥ pos0 + T. Later keys are masked.
        pos0: position of the first query: 0 without a cache, else the length of what is cached.

    Returns:
        (B, T, H·dh), heads next to each other: ready for wo.

    Raises:
        ValueError: shapes do not fit, H is no multiple of G, or there are too few keys.
    """
    check_attention(q, K, V, pos0)
    xp = namespace(q, K, V)
    B, T, H, dh = q.shape
    values = xp.permute_dims(V, (0, 2, 1, 3))[:, :, None]  # (B, G, 1, S, dh)
    out = attention_weights(q, K, pos0) @ values  # (B, G, R, T, dh)
    return xp.reshape(xp.permute_dims(out, (0, 3, 1, 2, 4)), (B, T, H * dh))


def attention_weights(q: Array, K: Array, pos0: int) -> Array:
    """softmax(q Kᵀ/√dh + mask) of `attention_core`, with the H heads as G groups of R.

    Returns:
        (B, G, R, T, S); rows add up to 1, and are 0 where a query does not see a key.
    """
    xp = namespace(q, K)
    B, T, H, dh = q.shape
    S, G = K.shape[1:3]
    R = H // G
    if T == 0:  # S may be 0 as well, and no keys have no maximum
        return xp.zeros((B, G, R, 0, S), dtype=q.dtype, device=device(q))
    grouped = xp.permute_dims(xp.reshape(q, (B, T, G, R, dh)), (0, 2, 3, 1, 4))  # (B, G, R, T, dh)
    keys = xp.permute_dims(K, (0, 2, 3, 1))[:, :, None]  # (B, G, 1, dh, S)
    scores = grouped @ keys / math.sqrt(dh)  # (B, G, R, T, S)
    position = xp.arange(S, device=device(q))
    visible = position <= position[pos0 : pos0 + T, None]  # (T, S)
    scores = xp.where(visible, scores, -xp.inf)
    # Each query sees a key, at least the one at position 0, so no row's maximum is −∞.
    weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def check_norm(x: Array, weight: Array) -> None:
    """Raises a `ValueError` unless `weight` (d,) is as wide as the rows of x (…, d)."""
    if weight.shape != x.shape[-1:]:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}; rows of x, of shape {tuple(x.shape)}, "
            f"have {x.shape[-1]} elements"
        )


def check_attention(q: Array, K: Array, V: Array, pos0: int) -> None:
    """Raises a `ValueError` unless these are arguments of `attention_core`."""
    for name, heads in (("q", q), ("K", K), ("V", V)):
        _check_heads(heads, name)
    if V.shape != K.shape:
        raise ValueError(f"V has shape {tuple(V.shape)}, K {tuple(K.shape)}; they must be equal")
    B, T, H, dh = q.shape
    S, G = K.shape[1:3]
    if K.shape[0] != B or K.shape[3] != dh:
        raise ValueError(
            f"q has shape {tuple(q.shape)}, K {tuple(K.shape)}; they differ in batch or in d_head"
        )
    if H % G:
        raise ValueError(
            f"{H} query head{'s' if H > 1 else ''} cannot share {G} KV heads equally; "
            "hand over for each query head the KV head that it uses"
        )
    if pos0 < 0:
        raise ValueError(f"pos0 is {pos0}; positions begin with 0")
    if pos0 + T > S:
        raise ValueError(
            f"queries reach up to position {pos0 + T - 1}, but K has {S} positions, from 0 on"
        )


def _check_heads(x: Array, name: str) -> None:
    if x.ndim != 4:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; it needs four dimensions: batch, positions, "
            "heads, d_head"
        )
