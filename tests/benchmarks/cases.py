"""What `make bench` times: name → a function that runs one whole launch on prepared tensors."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.kernels import flash_attention, layer_norm, matmul, softmax, vector_add  # noqa: E402


def _solution(assignment: str, module: str) -> ModuleType:
    path = ROOT / "solutions" / assignment / f"{module}.py"
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def cases() -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """name → (run through Triton, the same mathematics in torch), on seeded inputs."""
    make = torch.Generator().manual_seed(0)
    rmsnorm = _solution("rmsnorm", "rmsnorm")

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=make)

    x, g, dy = randn(1024, 1024), randn(1024), randn(1024, 1024)
    r = torch.rsqrt(x.pow(2).mean(1) + 1e-5)
    a, b = randn(512, 512), randn(512, 512)
    q, k, v = randn(8, 512, 64), randn(8, 512, 64), randn(8, 512, 64)
    long_x, long_y = randn(1 << 20), randn(1 << 20)

    def rmsnorm_backward_torch() -> object:
        dyg = dy * g
        dx = dyg * r[:, None] - x * (r**3 * (dyg * x).mean(1))[:, None]
        return dx, (dy * x * r[:, None]).sum(0)

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
        "vector add 1M": (
            lambda: vector_add.add(long_x, long_y),
            lambda: vector_add.reference(long_x, long_y),
        ),
        "softmax 1024×1024": (lambda: softmax.softmax(x), lambda: softmax.reference(x)),
        "layer norm 1024×1024": (
            lambda: layer_norm.layer_norm(x, g, g),
            lambda: layer_norm.reference(x, g, g),
        ),
    }
