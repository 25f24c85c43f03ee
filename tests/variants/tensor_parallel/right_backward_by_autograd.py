"""Leaves the derivatives of a rank's part of a block to autograd, which differentiates the forward
written with torch.
"""

import math

import numpy as np
import torch
from transformer_lab import Config


def attention_backward_of_rank(
    p: Params, cfg: Config, n: int, r: int, index: int, h: np.ndarray, dy: np.ndarray
) -> tuple[np.ndarray, Params]:
    names = ("wq", "wk", "wv", "wo")
    x, *weights = (
        torch.tensor(a, requires_grad=True) for a in (h, *(p["layers"][index][w] for w in names))
    )
    B, T, _ = x.shape
    dh = cfg.d_head
    with torch.enable_grad():
        angle = torch.arange(T)[:, None] * cfg.rope_theta ** (
            -torch.arange(0, dh, 2, dtype=torch.float64) / dh
        )
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]  # (T, 1, dh/2)

        def turned(heads: torch.Tensor) -> torch.Tensor:
            a, b = heads.chunk(2, dim=-1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

        q, k, v = ((x @ w).reshape(B, T, -1, dh) for w in weights[:3])
        used = kv_head_of_query(p, cfg, n, r)
        q, k, v = turned(q), turned(k)[:, :, used], v[:, :, used]
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(dh)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
        heads = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).reshape(B, T, -1)
        dx, *dweights = torch.autograd.grad(heads @ weights[3], [x, *weights], torch.tensor(dy))
    return dx.numpy(), {name: dw.numpy() for name, dw in zip(names, dweights, strict=True)}


def mlp_backward_of_rank(
    p: Params, index: int, h: np.ndarray, dy: np.ndarray
) -> tuple[np.ndarray, Params]:
    names = ("w_gate", "w_up", "w_down")
    x, *weights = (
        torch.tensor(a, requires_grad=True) for a in (h, *(p["layers"][index][w] for w in names))
    )
    with torch.enable_grad():
        gate, up, down = weights
        y = (torch.nn.functional.silu(x @ gate) * (x @ up)) @ down
        dx, *dweights = torch.autograd.grad(y, [x, *weights], torch.tensor(dy))
    return dx.numpy(), {name: dw.numpy() for name, dw in zip(names, dweights, strict=True)}
