"""The sizes of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral


@dataclass(frozen=True)
class Config:
    """Sizes of a Llama-style transformer: RMSNorm, RoPE, grouped-query attention, SwiGLU.

    Attributes:
        n_layers: layers L.
        d_model: width d of the residual stream.
        n_heads: query heads H.
        n_kv_heads: heads G of keys and values; H/G query heads, next to each other, share one
            (J. Ainslie et al., "GQA", 2023). G = H is multi-head, G = 1 multi-query attention.
        d_head: width of a head. It is stored, not derived: H·d_head need not be d_model.
        d_ff: width f of the MLP.
        vocab: tokens; they are numbered from 0.
        max_seq: most positions of a sequence.
        norm_eps: ε of RMSNorm, inside the root.
        rope_theta: θ of RoPE; the larger, the slower the slowest rotation.

    Raises:
        ValueError: no model has these sizes.
    """

    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    vocab: int
    max_seq: int
    norm_eps: float = 1e-5
    rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        for name in (
            "n_layers",
            "d_model",
            "n_heads",
            "n_kv_heads",
            "d_head",
            "d_ff",
            "vocab",
            "max_seq",
        ):
            check_count(getattr(self, name), name)
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"{self.n_heads} query heads cannot share {self.n_kv_heads} KV heads equally; "
                "n_heads is a multiple of n_kv_heads"
            )
        if self.d_head % 2:
            raise ValueError(f"d_head is {self.d_head}; RoPE turns pairs, so it is even")
        if not 0 <= self.norm_eps < math.inf:
            raise ValueError(f"norm_eps is {self.norm_eps}; it is 0 or more")
        if not 0 < self.rope_theta < math.inf:
            raise ValueError(f"rope_theta is {self.rope_theta}; it is more than 0")


def check_count(value: object, name: str) -> None:
    """Raises a `ValueError` unless `value` is a whole number, 1 or more."""
    if not isinstance(value, Integral):
        raise ValueError(f"{name} is {value}; it is a whole number")
    if value < 1:
        raise ValueError(f"{name} is {value}; it is 1 or more")


#: To experiment with. 1, 2, 4 and 8 devices can share it; at 8 there are more than KV heads.
#: Its widths (64, 8·10, 4·10, 176, 104) all differ: a matrix the wrong way round fits nowhere.
TINY = Config(
    n_layers=2, d_model=64, n_heads=8, n_kv_heads=4, d_head=10, d_ff=176, vocab=104, max_seq=64
)
