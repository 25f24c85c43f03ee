"""What `make bench` times: name → a function that runs one whole launch on prepared tensors."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.kernels import (  # noqa: E402 - after the path is set
    cross_entropy,
    flash_attention,
    layer_norm,
    layer_norm_backward,
    matmul,
    persistent_matmul,
    softmax,
    vector_add,
)

#: (runs through Triton, runs the same mathematics in torch)
Case = tuple[Callable[[], object], Callable[[], object]]


def solution(assignment: str, module: str) -> ModuleType:
    """A module of the reference solutions."""
    path = ROOT / "solutions" / assignment / f"{module}.py"
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def cases() -> dict[str, Case]:
    """name → (run through Triton, the same mathematics in torch), on seeded inputs."""
    make = torch.Generator().manual_seed(0)
    rmsnorm = solution("rmsnorm", "rmsnorm")
    flash_triton = solution("flash_attention", "flash_triton")

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=make)

    x, g, dy = randn(1024, 1024), randn(1024), randn(1024, 1024)
    r = torch.rsqrt(x.pow(2).mean(1) + 1e-5)
    a, b = randn(512, 512), randn(512, 512)
    q, k, v = randn(8, 512, 64), randn(8, 512, 64), randn(8, 512, 64)
    q4, k4, v4, do = q[None], k[None], v[None], randn(1, 8, 512, 64)
    long_x, long_y = randn(1 << 20), randn(1 << 20)
    mean, rstd = layer_norm_backward.statistics(x)
    logits = randn(256, 16_384)
    target = torch.randint(16_384, (256,), generator=make)
    target[::16] = -100

    def rmsnorm_backward_torch() -> object:
        dyg = dy * g
        dx = dyg * r[:, None] - x * (r**3 * (dyg * x).mean(1))[:, None]
        return dx, (dy * x * r[:, None]).sum(0)

    @functools.cache
    def flash_outputs(causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
        o, lse = flash_attention.reference(q, k, v, causal)
        return o[None], lse[None]

    def flash_backward(causal: bool) -> Case:
        return (
            lambda: flash_triton.attention_backward(
                q4, k4, v4, *flash_outputs(causal), do, causal=causal
            ),
            lambda: flash_attention.backward_reference(
                q4, k4, v4, *flash_outputs(causal), do, causal=causal
            ),
        )

    return {
        "RMSNorm forward 1024×1024": (
            lambda: rmsnorm.rmsnorm_forward(x, g, 1e-5),
            lambda: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5) * g,
        ),
        "RMSNorm backward 1024×1024": (
            lambda: rmsnorm.rmsnorm_backward(x, g, r, dy),
            rmsnorm_backward_torch,
        ),
        "matmul 512³, tiles 64×64×32": (
            lambda: matmul.matmul(a, b),
            lambda: matmul.reference(a, b),
        ),
        "flash forward 8×512×64": (
            lambda: flash_attention.flash_forward(q, k, v),
            lambda: flash_attention.reference(q, k, v),
        ),
        "flash forward 8×512×64 causal": (
            lambda: flash_attention.flash_forward(q, k, v, causal=True),
            lambda: flash_attention.reference(q, k, v, causal=True),
        ),
        "flash backward 8×512×64": flash_backward(causal=False),
        "flash backward 8×512×64 causal": flash_backward(causal=True),
        "vector add 1M": (
            lambda: vector_add.add(long_x, long_y),
            lambda: vector_add.reference(long_x, long_y),
        ),
        "softmax 1024×1024": (lambda: softmax.softmax(x), lambda: softmax.reference(x)),
        "layer norm 1024×1024": (
            lambda: layer_norm.layer_norm(x, g, g),
            lambda: layer_norm.reference(x, g, g),
        ),
        "layer norm backward 1024×1024": (
            lambda: layer_norm_backward.layer_norm_backward(x, g, mean, rstd, dy),
            lambda: layer_norm_backward.reference(x, g, mean, rstd, dy),
        ),
        "cross-entropy 256×16384": (
            lambda: cross_entropy.cross_entropy(logits, target),
            lambda: cross_entropy.reference(logits, target),
        ),
        "persistent matmul 512³, 16 programs": (
            lambda: persistent_matmul.persistent_matmul(a, b),
            lambda: persistent_matmul.reference(a, b),
        ),
    }
