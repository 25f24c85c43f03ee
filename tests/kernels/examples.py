"""Small seeded launches of every kernel: name → (outputs through Triton, outputs in torch).

Run as a script, it saves the outputs of Triton's side; with TRITON_INTERPRET=1 in the environment
those are the interpreter's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.kernels import (  # noqa: E402 - after the path is set, when run as a script
    cross_entropy,
    flash_attention,
    layer_norm,
    layer_norm_backward,
    matmul,
    persistent_matmul,
    softmax,
    vector_add,
)

Outputs = tuple[torch.Tensor, ...]


def examples() -> dict[str, tuple[Callable[[], Outputs], Callable[[], Outputs]]]:
    """Sizes are chosen to leave tails in every axis that a kernel tiles."""
    make = torch.Generator().manual_seed(349)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=make)

    x, y = randn(1000), randn(1000)
    rows, weight, bias = randn(7, 300), randn(300), randn(300)
    a, b = randn(100, 72), randn(72, 90)
    q, k, v = randn(2, 100, 32), randn(2, 100, 32), randn(2, 100, 32)
    small = (32, 32, 16)
    mean, rstd = layer_norm_backward.statistics(rows)
    rows_dy = randn(7, 300)
    target = torch.tensor([5, -100, 299, 0, 128, -100, 127])
    return {
        "vector_add": (
            lambda: (vector_add.add(x, y, block=256),),
            lambda: (vector_add.reference(x, y),),
        ),
        "softmax": (lambda: (softmax.softmax(rows),), lambda: (softmax.reference(rows),)),
        "softmax_of_a_view": (
            lambda: (softmax.softmax(rows[:, 20:290]),),
            lambda: (softmax.reference(rows[:, 20:290]),),
        ),
        "layer_norm": (
            lambda: (layer_norm.layer_norm(rows, weight, bias, block=128),),
            lambda: (layer_norm.reference(rows, weight, bias),),
        ),
        "layer_norm_backward": (
            lambda: layer_norm_backward.layer_norm_backward(
                rows, weight, mean, rstd, rows_dy, programs=3
            ),
            lambda: layer_norm_backward.reference(rows, weight, mean, rstd, rows_dy),
        ),
        "cross_entropy": (
            lambda: cross_entropy.cross_entropy(rows, target, block=128),
            lambda: cross_entropy.reference(rows, target),
        ),
        "matmul": (
            lambda: (matmul.matmul(a, b, small),),
            lambda: (matmul.reference(a, b),),
        ),
        "matmul_transposed": (
            lambda: (matmul.matmul(b.t(), a.t(), small),),
            lambda: (matmul.reference(b.t(), a.t()),),
        ),
        "persistent_matmul": (
            lambda: (persistent_matmul.persistent_matmul(a, b, small, programs=5),),
            lambda: (persistent_matmul.reference(a, b),),
        ),
        "flash_forward": (
            lambda: flash_attention.flash_forward(q, k, v, block=(32, 16)),
            lambda: flash_attention.reference(q, k, v),
        ),
        "flash_forward_causal": (
            lambda: flash_attention.flash_forward(q, k, v, causal=True, block=(32, 16)),
            lambda: flash_attention.reference(q, k, v, causal=True),
        ),
    }


if __name__ == "__main__":
    torch.save({name: triton() for name, (triton, _) in examples().items()}, sys.argv[1])
