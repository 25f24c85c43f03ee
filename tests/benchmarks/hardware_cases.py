"""Kernels and shapes whose counters the hardware model predicts and Nsight Compute measures.

    ncu --metrics … python tests/benchmarks/hardware_cases.py --device cuda [--only NAME]

launches each case's kernel once, on a GPU, between torch's kernels that make the inputs; `kernel`
names it. The same module on the CPU is what `predicted.py` runs. It needs torch, Triton 3.6 or 3.7,
and this repository; on a GPU, `PYTHONPATH=.`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.kernels import flash_attention, matmul, softmax  # noqa: E402

EPS = 1e-5


@dataclass(frozen=True)
class Case:
    """A kernel at one size: `prepare(device)` makes its inputs and returns what launches it."""

    name: str
    kernel: str
    prepare: Callable[[str], Callable[[], object]]


def _rmsnorm() -> ModuleType:
    path = ROOT / "solutions" / "rmsnorm" / "rmsnorm.py"
    spec = importlib.util.spec_from_file_location("rmsnorm", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rmsnorm"] = module
    spec.loader.exec_module(module)
    return module


def _randn(device: str, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(device, dtype)


def _rmsnorm_forward(m: int, n: int, dtype: torch.dtype) -> Callable[[str], Callable[[], object]]:
    def prepare(device: str) -> Callable[[], object]:
        rmsnorm = _rmsnorm()
        x, g = _randn(device, m, n, dtype=dtype), _randn(device, n, dtype=dtype)
        return lambda: rmsnorm.rmsnorm_forward(x, g, EPS)

    return prepare


def _rmsnorm_backward(m: int, n: int, programs: int) -> Callable[[str], Callable[[], object]]:
    """One program a row, or, with `programs`, the persistent kernel."""

    def prepare(device: str) -> Callable[[], object]:
        rmsnorm = _rmsnorm()
        x, g, dy = _randn(device, m, n), _randn(device, n), _randn(device, m, n)
        r = torch.rsqrt(x.pow(2).mean(1) + EPS)
        if programs:
            return lambda: rmsnorm.rmsnorm_backward_persistent(x, g, r, dy, programs)
        return lambda: rmsnorm.rmsnorm_backward(x, g, r, dy)

    return prepare


def _softmax(m: int, n: int) -> Callable[[str], Callable[[], object]]:
    def prepare(device: str) -> Callable[[], object]:
        x = _randn(device, m, n)
        return lambda: softmax.softmax(x)

    return prepare


def _matmul(
    n: int, dtype: torch.dtype, precision: str = "ieee", block: tuple[int, int, int] = (64, 64, 32)
) -> Callable[[str], Callable[[], object]]:
    def prepare(device: str) -> Callable[[], object]:
        a, b = _randn(device, n, n, dtype=dtype), _randn(device, n, n, dtype=dtype)
        return lambda: matmul.matmul(a, b, block=block, precision=precision)

    return prepare


def _flash(heads: int, n: int, d: int, causal: bool) -> Callable[[str], Callable[[], object]]:
    def prepare(device: str) -> Callable[[], object]:
        q, k, v = (_randn(device, heads, n, d, dtype=torch.float16) for _ in range(3))
        return lambda: flash_attention.flash_forward(q, k, v, causal=causal)

    return prepare


_F16, _F32 = torch.float16, torch.float32

#: By name.
CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("rmsnorm forward 4096x4096 fp32", "rmsnorm_fwd_kernel",
             _rmsnorm_forward(4096, 4096, _F32)),
        Case("rmsnorm forward 8192x4096 bf16", "rmsnorm_fwd_kernel",
             _rmsnorm_forward(8192, 4096, torch.bfloat16)),
        Case("rmsnorm backward 4096x4096 fp32", "rmsnorm_bwd_kernel",
             _rmsnorm_backward(4096, 4096, 0)),
        Case("rmsnorm backward persistent 4096x4096 fp32", "rmsnorm_bwd_persistent_kernel",
             _rmsnorm_backward(4096, 4096, 264)),
        Case("softmax 4096x4096 fp32", "softmax_kernel", _softmax(4096, 4096)),
        Case("softmax 8192x1000 fp32", "softmax_kernel", _softmax(8192, 1000)),
        Case("matmul 1024 fp16", "matmul_kernel", _matmul(1024, _F16)),
        Case("matmul 2048 fp16", "matmul_kernel", _matmul(2048, _F16)),
        Case("matmul 1024 tf32", "matmul_kernel", _matmul(1024, _F32, "tf32")),
        Case("matmul 1024 fp32", "matmul_kernel", _matmul(1024, _F32, "ieee")),
        Case("flash forward 8x2048x64 fp16", "flash_forward_kernel", _flash(8, 2048, 64, False)),
        Case("flash forward causal 8x2048x64 fp16", "flash_forward_kernel",
             _flash(8, 2048, 64, True)),
    )
}  # fmt: skip


def chosen(only: str) -> list[Case]:
    """The cases whose name holds `only`.

    Raises SystemExit if none does.
    """
    found = [case for name, case in CASES.items() if only in name]
    if not found:
        raise SystemExit(f"no case is called like {only!r}; there are\n  " + "\n  ".join(CASES))
    return found


def main() -> None:
    """Launches every case once."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    arguments = parser.parse_args()
    for case in chosen(arguments.only):
        launch = case.prepare(arguments.device)
        launch()
        if arguments.device != "cpu":
            torch.cuda.synchronize()
        print(case.name, flush=True)


if __name__ == "__main__":
    main()
