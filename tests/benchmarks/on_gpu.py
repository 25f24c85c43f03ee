"""The students' file on a real GPU, unchanged: is it right there, and how near to a device copy?

    python tests/benchmarks/on_gpu.py            # needs a CUDA GPU, its torch and its Triton

Bandwidth is what DRAM has to move at least, each tensor once, over the median time of a launch, as
a share of what a device-to-device copy of the same machine reaches (read and write counted).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console
from rich.table import Table
from triton.testing import do_bench

SOLUTION = Path(__file__).resolve().parents[2] / "solutions" / "rmsnorm" / "rmsnorm.py"
EPS = 1e-5


def load(path: Path) -> ModuleType:
    """The file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def rms_norm(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """torch's own, from the definition's arguments."""
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), g, EPS)


def largest_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """Largest difference to a float64 result, relative to that result's root mean square."""
    scale = exact.pow(2).mean().sqrt().clamp(min=1e-30)
    return float(((actual.double() - exact).abs().max() / scale).item())


def correctness(rmsnorm: ModuleType, console: Console) -> bool:
    """Differences of y, dx and dg from float64 autograd, beside those of torch's own kernels."""
    table = Table(title="largest error ÷ RMS of the exact result", title_justify="left")
    for heading in ("shape", "dtype", "y", "dx", "dg", "dx persistent", "dg persistent", "torch y"):
        table.add_column(heading, justify="right")
    fine = True
    for dtype, bound in ((torch.float32, 2e-5), (torch.bfloat16, 4e-2), (torch.float16, 5e-3)):
        for shape in ((4, 16, 64), (37, 100), (2, 3, 513), (129, 4096), (7, 16384), (3, 2)):
            torch.manual_seed(0)
            x = torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)
            g = torch.randn(shape[-1], device="cuda", dtype=dtype, requires_grad=True)
            dy = torch.randn(*shape, device="cuda", dtype=dtype)
            x64, g64 = (t.detach().double().requires_grad_() for t in (x, g))
            y64 = x64 * torch.rsqrt(x64.pow(2).mean(-1, keepdim=True) + EPS) * g64
            y64.backward(dy.double())
            y = rmsnorm.rmsnorm(x, g, EPS)
            y.backward(dy)
            rows = x.detach().reshape(-1, shape[-1])
            _, r = rmsnorm.rmsnorm_forward(rows, g.detach(), EPS)
            dx, dg_partial = rmsnorm.rmsnorm_backward_persistent(
                rows, g.detach(), r, dy.reshape(rows.shape), 264
            )
            errors = [
                largest_error(y, y64),
                largest_error(x.grad, x64.grad),
                largest_error(g.grad, g64.grad),
                largest_error(dx, x64.grad.reshape(rows.shape)),
                largest_error(dg_partial.sum(0), g64.grad),
            ]
            fine &= all(error < bound for error in errors)
            name = str(dtype).removeprefix("torch.")
            torch_y = largest_error(rms_norm(x, g), y64)
            table.add_row(str(shape), name, *(f"{e:.1e}" for e in (*errors, torch_y)))
    console.print(table)
    return fine


def bandwidth(rmsnorm: ModuleType, console: Console) -> None:
    """GB/s of each task and of torch's own, as shares of a device copy."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copy = 2 * source.numel() / do_bench(lambda: target.copy_(source), return_mode="median") / 1e6
    console.print(f"device copy: {copy:,.0f} GB/s (read + write)")
    table = Table(title="median of do_bench; share of the device copy", title_justify="left")
    for heading in ("M × N", "dtype", "kernel", "µs", "GB/s", "share"):
        table.add_column(heading, justify="right")
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    programs = 4 * multiprocessors
    for m, n, dtype in (
        (16384, 4096, torch.bfloat16),
        (16384, 4096, torch.float32),
        (65536, 1024, torch.bfloat16),
        (4096, 16384, torch.bfloat16),
    ):
        x = torch.randn(m, n, device="cuda", dtype=dtype)
        g = torch.randn(n, device="cuda", dtype=dtype)
        dy = torch.randn_like(x)
        _, r = rmsnorm.rmsnorm_forward(x, g, EPS)
        s = x.element_size()
        x_leaf, g_leaf = x.clone().requires_grad_(), g.clone().requires_grad_()
        y_leaf = rms_norm(x_leaf, g_leaf)

        def torch_backward(y: torch.Tensor = y_leaf, dy: torch.Tensor = dy) -> object:
            return torch.autograd.grad(y, (x_leaf, g_leaf), dy, retain_graph=True)  # noqa: B023

        def persistent_with_sum(x=x, g=g, r=r, dy=dy) -> object:  # type: ignore[no-untyped-def]
            dx, partial = rmsnorm.rmsnorm_backward_persistent(x, g, r, dy, programs)
            return dx, partial.sum(0)

        def backward_with_sum(x=x, g=g, r=r, dy=dy) -> object:  # type: ignore[no-untyped-def]
            dx, partial = rmsnorm.rmsnorm_backward(x, g, r, dy)
            return dx, partial.sum(0)

        forward_bytes = 2 * m * n * s + n * s + 4 * m
        backward_bytes = 3 * m * n * s + n * s + 4 * m + 4 * n
        timed: list[tuple[str, Callable[[], object], int]] = [
            ("forward", lambda x=x, g=g: rmsnorm.rmsnorm_forward(x, g, EPS), forward_bytes),
            ("torch forward", lambda x=x, g=g: rms_norm(x, g), forward_bytes),
            ("backward + sum", backward_with_sum, backward_bytes),
            (f"persistent, P = {programs}, + sum", persistent_with_sum, backward_bytes),
            ("torch backward", torch_backward, backward_bytes),
        ]
        for name, run, moved in timed:
            milliseconds = do_bench(run, return_mode="median")
            rate = moved / milliseconds / 1e6
            table.add_row(
                f"{m} × {n}",
                str(dtype).removeprefix("torch."),
                name,
                f"{milliseconds * 1e3:,.0f}",
                f"{rate:,.0f}",
                f"{rate / copy:.0%}",
            )
        table.add_section()
    console.print(table)


def main() -> None:
    """Both tables; exit status 1 if a result is wrong."""
    if not torch.cuda.is_available():
        raise SystemExit("on_gpu.py needs a CUDA GPU; on a CPU, `make test` checks the same file")
    console = Console(width=120)
    rmsnorm = load(SOLUTION)
    console.print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    fine = correctness(rmsnorm, console)
    bandwidth(rmsnorm, console)
    if not fine:
        raise SystemExit("a result is further from float64 than its dtype allows")


if __name__ == "__main__":
    main()
