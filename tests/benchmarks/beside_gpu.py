"""Twelve kernels on a real GPU and on the simulator, from the same inputs: do they agree?

    python tests/benchmarks/beside_gpu.py        # needs a CUDA GPU, its torch and its Triton

Each side is a process of its own: on a machine with a GPU the simulator is asked for by name
(`TRITON_DEFAULT_BACKEND=mini_triton`). Inputs are drawn on the CPU. Differences are given in units
of the dtype's rounding (`torch.finfo.eps`) at the result's root mean square, between the two sides
and from float64; two ways to add up N terms in float32 differ by some √N of them at worst.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.on_gpu import load  # noqa: E402
from tests.kernels import (  # noqa: E402
    cross_entropy,
    flash_attention,
    layer_norm,
    layer_norm_backward,
    matmul,
    persistent_matmul,
    softmax,
    vector_add,
)

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
EPS = 1e-5
Outputs = dict[str, torch.Tensor]


def cases(device: str, dtype: torch.dtype) -> dict[str, Callable[[], Outputs]]:
    """name → outputs by name; with device "float64" they are computed by torch, in float64."""
    make = torch.Generator().manual_seed(0)
    exact = device == "float64"

    def randn(*shape: int) -> torch.Tensor:
        drawn = torch.randn(*shape, generator=make).to(dtype)
        return drawn.double() if exact else drawn.to(device)

    rmsnorm = load(ROOT / "solutions" / "rmsnorm" / "rmsnorm.py")
    flash = load(ROOT / "solutions" / "flash_attention" / "flash_triton.py")
    x, g, b, dy = randn(300, 1000), randn(1000), randn(1000), randn(300, 1000)
    r = torch.rsqrt(x.double().pow(2).mean(1) + EPS).to(torch.float64 if exact else torch.float32)
    mean, rstd = layer_norm_backward.statistics(x.double(), EPS)
    if not exact:
        mean, rstd = mean.float(), rstd.float()
    a, c = randn(200, 300), randn(300, 260)
    q, k, v, do = (randn(1, 4, 300, 64) for _ in range(4))
    logits = randn(100, 5000)
    target = torch.randint(5000, (100,), generator=make).to("cpu" if exact else device)
    precision = "ieee" if dtype == torch.float32 else "tf32"  # which says nothing of 16-bit floats

    def rmsnorm_backward() -> Outputs:
        dyg = dy * g
        dx = dyg * r[:, None] - x * (r**3 * (dyg * x).mean(1))[:, None]
        return {"dx": dx, "dg": (dy * x * r[:, None]).sum(0)}

    def flash_backward(causal: bool) -> Outputs:
        q_, k_, v_ = (t.detach().double().requires_grad_() for t in (q, k, v))
        o, lse = flash_attention.reference(q_[0], k_[0], v_[0], causal)
        o.backward(do[0].double())
        if exact:
            return {"dq": q_.grad, "dk": k_.grad, "dv": v_.grad}
        o, lse = o.detach().to(dtype)[None], lse.detach().float()[None]
        dq, dk, dv = flash.attention_backward(q, k, v, o, lse, do, causal, Br=32, Bc=32)
        return {"dq": dq, "dk": dk, "dv": dv}

    if exact:
        return {
            "RMSNorm forward": lambda: {"y": x * r[:, None] * g, "r": r},
            "RMSNorm backward": rmsnorm_backward,
            "RMSNorm backward, persistent": rmsnorm_backward,
            "layer norm": lambda: {"y": layer_norm.reference(x, g, b, EPS)},
            "layer norm backward": lambda: named(
                "dx dw db", layer_norm_backward.reference(x, g, mean, rstd, dy)
            ),
            "softmax": lambda: {"y": softmax.reference(x)},
            "cross-entropy": lambda: named("loss dx", cross_entropy.reference(logits, target)),
            "matmul": lambda: {"c": a @ c},
            "matmul, persistent": lambda: {"c": a @ c},
            "flash forward": lambda: named("o lse", flash_attention.reference(q[0], k[0], v[0])),
            "flash forward, causal": lambda: named(
                "o lse", flash_attention.reference(q[0], k[0], v[0], causal=True)
            ),
            "flash backward, causal": lambda: flash_backward(causal=True),
            "vector add": lambda: {"z": x.flatten() + dy.flatten()},
        }

    def partial(outputs: tuple[torch.Tensor, ...]) -> Outputs:
        dx, dg_partial = outputs
        return {"dx": dx, "dg": dg_partial.double().sum(0).float()}

    return {
        "RMSNorm forward": lambda: named("y r", rmsnorm.rmsnorm_forward(x, g, EPS)),
        "RMSNorm backward": lambda: partial(rmsnorm.rmsnorm_backward(x, g, r, dy)),
        "RMSNorm backward, persistent": lambda: partial(
            rmsnorm.rmsnorm_backward_persistent(x, g, r, dy, 16)
        ),
        "layer norm": lambda: {"y": layer_norm.layer_norm(x, g, b, EPS)},
        "layer norm backward": lambda: named(
            "dx dw db", layer_norm_backward.layer_norm_backward(x, g, mean, rstd, dy)
        ),
        "softmax": lambda: {"y": softmax.softmax(x)},
        "cross-entropy": lambda: named("loss dx", cross_entropy.cross_entropy(logits, target)),
        "matmul": lambda: {"c": matmul.matmul(a, c, precision=precision)},
        "matmul, persistent": lambda: {
            "c": persistent_matmul.persistent_matmul(a, c, precision=precision)
        },
        "flash forward": lambda: named("o lse", flash_attention.flash_forward(q[0], k[0], v[0])),
        "flash forward, causal": lambda: named(
            "o lse", flash_attention.flash_forward(q[0], k[0], v[0], causal=True)
        ),
        "flash backward, causal": lambda: flash_backward(causal=True),
        "vector add": lambda: {"z": vector_add.add(x.flatten(), dy.flatten())},
    }


def named(names: str, outputs: tuple[torch.Tensor, ...]) -> Outputs:
    """Outputs by name."""
    return dict(zip(names.split(), outputs, strict=True))


def one_side(device: str, folder: Path) -> None:
    """Runs all cases on a device and writes their outputs."""
    for dtype in DTYPES:
        results = {
            f"{case}: {name}": output.detach().cpu().contiguous()
            for case, run in cases(device, dtype).items()
            for name, output in run().items()
        }
        save_file(results, folder / f"{device}-{dtype}.safetensors")


def roundings(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest difference ÷ (the dtype's eps × the larger of the element and the RMS)."""
    scale = expected.double().abs().clamp(min=expected.double().pow(2).mean().sqrt().item())
    difference = (actual.double() - expected.double()).abs() / scale
    return float(difference.max()) / torch.finfo(actual.dtype).eps


def main() -> None:
    """Runs both sides and compares; exit status 1 if they are further apart than rounding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=("cuda", "cpu", "float64"))
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.side:
        return one_side(asked.side, asked.folder)
    if not torch.cuda.is_available():
        raise SystemExit("beside_gpu.py needs a CUDA GPU")
    table = Table(title="largest difference in roundings of the dtype", title_justify="left")
    for heading in ("output", "dtype", "GPU − simulator", "GPU − float64", "simulator − float64"):
        table.add_column(heading, justify="left" if heading == "output" else "right")
    table.add_column("equal bits", justify="right")
    far = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in ("cuda", "cpu", "float64"):
            env = dict(os.environ)
            if side == "cpu":
                env["TRITON_DEFAULT_BACKEND"] = "mini_triton"
            command = [sys.executable, __file__, "--side", side, "--folder", str(folder)]
            subprocess.run(command, env=env, check=True)
        for dtype in DTYPES:
            gpu, simulator, exact = (
                load_file(folder / f"{side}-{dtype}.safetensors")
                for side in ("cuda", "cpu", "float64")
            )
            for output in gpu:
                apart = roundings(gpu[output], simulator[output])
                errors = [roundings(side[output], exact[output]) for side in (gpu, simulator)]
                # Both round the same exact result, each in its own order of additions.
                if apart > 1 + 2 * sum(errors):
                    far.append(f"{output} in {dtype}")
                same = (gpu[output] == simulator[output]).double().mean().item()
                figures = (f"{figure:.2f}" for figure in (apart, *errors))
                short = str(dtype).removeprefix("torch.")
                table.add_row(output, short, *figures, f"{same:.1%}")
            table.add_section()
    console = Console(width=120)
    console.print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    console.print(table)
    if far:
        raise SystemExit("further apart than rounding: " + ", ".join(far))


if __name__ == "__main__":
    main()
