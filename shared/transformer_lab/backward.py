"""Gradients of the parts of a layer, each with its derivation.

`dy` stands for ∂loss/∂y throughout: of the shape of y, and handed from the end of the model to its
beginning. Each function takes what the forward took and computes anew what it needs in between.
Like the forward's, arguments are numpy arrays or torch tensors of one dtype and device.
"""

from __future__ import annotations

import math

from transformer_lab.arrays import Array, namespace
from transformer_lab.ops import (
    apply_rope,
    attention_weights,
    check_attention,
    check_norm,
    logistic,
)


def rms_norm_backward(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
    """Gradients of y = x·r·weight with r = (mean(x²) + ε)^(−1/2), over the last axis.

    r depends on all d elements of its row: ∂r/∂xⱼ = −½ (mean(x²) + ε)^(−3/2) · 2xⱼ/d = −r³xⱼ/d.
    With c = weight ⊙ dy, the gradient with regard to x·r,
        dxⱼ = cⱼ·r + Σᵢ cᵢxᵢ · ∂r/∂xⱼ = r·cⱼ − r³·xⱼ·mean(c ⊙ x)
        dweight = Σ over rows of dy ⊙ x·r.

    Args:
        dy, x: (…, d) each.
        weight: (d,).
        eps: ε, inside the root.

    Returns:
        dx: (…, d).
        dweight: (d,).

    Raises:
        ValueError: shapes do not fit.
    """
    check_norm(x, weight)
    _check_shape(dy, "dy", x.shape)
    xp = namespace(dy, x, weight)
    r = 1 / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + eps)  # (…, 1)
    c = weight * dy  # (…, d)
    dx = r * c - r**3 * x * xp.mean(c * x, axis=-1, keepdims=True)
    dweight = xp.sum(dy * x * r, axis=tuple(range(x.ndim - 1)))
    return dx, dweight


def silu_backward(dy: Array, x: Array) -> Array:
    """Gradient of y = x·σ(x), element by element.

    σ' = σ(1 − σ), so dx = dy · (σ + x·σ(1 − σ)) = dy · σ · (1 + x(1 − σ)).

    Args:
        dy, x: of one shape, any.

    Returns:
        dx, of the same shape.

    Raises:
        ValueError: the shapes differ.
    """
    _check_shape(dy, "dy", x.shape)
    sigma = logistic(x)
    return dy * sigma * (1 + x * (1 - sigma))


def apply_rope_backward(dy: Array, cos: Array, sin: Array) -> Array:
    """Gradient of `apply_rope` with regard to the heads.

    Each pair is multiplied by [[cos, −sin], [sin, cos]]. The gradient takes the transpose, which is
    the rotation back: the same with −sin.

    Args:
        dy: (B, T, heads, dh).
        cos, sin: (T, dh/2) each, those of the forward.

    Returns:
        dx: (B, T, heads, dh).

    Raises:
        ValueError: shapes do not fit.
    """
    return apply_rope(dy, cos, -sin)


def attention_core_backward(
    dout: Array, q: Array, K: Array, V: Array, pos0: int
) -> tuple[Array, Array, Array]:
    """Gradients of causal attention, `attention_core`.

    For one head, with s = q Kᵀ/√dh, P = softmax(s + mask) and o = P V:
        dV = Pᵀ do                          dP = do Vᵀ
        ds = P ⊙ (dP − D),  D the rows' sums of P ⊙ dP
        dq = ds K/√dh                       dK = dsᵀ q/√dh
    ds is the softmax's gradient, ∂Pᵢ/∂sⱼ = Pᵢ(δᵢⱼ − Pⱼ). Where the mask is, P = 0 and so is ds.
    The R = H/G query heads of a group use one K and one V: their dK and dV are summed.
    Source: T. Dao et al., "FlashAttention" (2022), appendix B.2.

    Args:
        dout: (B, T, H·dh).
        q: (B, T, H, dh).
        K, V: (B, S, G, dh) each, with S ≥ pos0 + T.
        pos0: position of the first query.

    Returns:
        dq: (B, T, H, dh).
        dK, dV: (B, S, G, dh) each; 0 for keys that no query sees.

    Raises:
        ValueError: shapes do not fit, H is no multiple of G, or there are too few keys.
    """
    check_attention(q, K, V, pos0)
    B, T, H, dh = q.shape
    G = K.shape[2]
    R = H // G
    _check_shape(dout, "dout", (B, T, H * dh))
    xp = namespace(dout, q, K, V)

    def grouped(heads: Array) -> Array:  # (B, T, H·dh) or (B, T, H, dh) → (B, G, R, T, dh)
        return xp.permute_dims(xp.reshape(heads, (B, T, G, R, dh)), (0, 2, 3, 1, 4))

    do = grouped(dout)
    keys = xp.permute_dims(K, (0, 2, 1, 3))[:, :, None]  # (B, G, 1, S, dh)
    values = xp.permute_dims(V, (0, 2, 3, 1))[:, :, None]  # (B, G, 1, dh, S)
    P = attention_weights(q, K, pos0)  # (B, G, R, T, S)
    dP = do @ values  # (B, G, R, T, S)
    ds = P * (dP - xp.sum(P * dP, axis=-1, keepdims=True)) / math.sqrt(dh)
    dq = ds @ keys  # (B, G, R, T, dh)
    dK = xp.sum(xp.matrix_transpose(ds) @ grouped(q), axis=2)  # (B, G, S, dh), over R
    dV = xp.sum(xp.matrix_transpose(P) @ do, axis=2)  # (B, G, S, dh), over R
    return (
        xp.reshape(xp.permute_dims(dq, (0, 3, 1, 2, 4)), (B, T, H, dh)),
        xp.permute_dims(dK, (0, 2, 1, 3)),
        xp.permute_dims(dV, (0, 2, 1, 3)),
    )


def _check_shape(given: Array, name: str, shape: tuple[int, ...]) -> None:
    if given.shape != shape:
        raise ValueError(
            f"{name} has shape {tuple(given.shape)}; that of the output is {tuple(shape)}"
        )
