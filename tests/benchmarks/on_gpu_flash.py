"""FlashAttention on a real GPU, the students' file unchanged: is it right there, and how fast?

    python tests/benchmarks/on_gpu_flash.py      # needs a CUDA GPU, its torch and its Triton

Every result is compared with float64 on the same GPU. TFLOP/s are those of the products that
attention is made of, 4·N²·d a head forward and 10·N²·d backward, half of it under a causal mask,
over the median time of a launch; a kernel that computes something twice gets no credit for it. They
stand beside torch's own attention with its flash and its cuDNN backend, timed the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from on_gpu import load
from rich.console import Console
from rich.table import Table
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from triton.testing import do_bench

SOLUTION = Path(__file__).resolve().parents[2] / "solutions" / "flash_attention" / "flash_triton.py"

BOUNDS = {torch.float32: 4e-5, torch.bfloat16: 5e-2, torch.float16: 6e-3}
SHAPES = (  # B, H, G, Nq, Nk, d
    (2, 4, 4, 512, 512, 64),
    (1, 4, 2, 1025, 1025, 128),
    (1, 2, 1, 2048, 2048, 64),
    (1, 2, 2, 1500, 3000, 128),
    (1, 2, 1, 1200, 1100, 40),
    (1, 6, 2, 257, 97, 40),
    (1, 4, 1, 1, 1025, 59),
    (1, 2, 2, 113, 113, 111),
    (2, 3, 1, 100, 300, 256),
    (1, 2, 1, 5, 0, 16),
)

TOKENS, WIDTH = 16384, 2048  # B · N and H · d of what is timed
LENGTHS = (1024, 2048, 4096, 8192, 16384)
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor, causal: bool
) -> list[torch.Tensor]:
    """o, lse, dq, dk and dv in float64."""
    (Nq, d), (G, Nk) = q.shape[2:], k.shape[1:3]
    q, k, v = (t.detach().double().requires_grad_() for t in (q, k, v))
    k_all, v_all = (t.repeat_interleave(q.shape[1] // G, dim=1) for t in (k, v))
    s = q @ k_all.transpose(2, 3) / math.sqrt(d)
    seen = torch.ones(Nq, Nk, dtype=torch.bool, device=q.device)
    seen = seen.tril(Nk - Nq) if causal else seen
    s = s.masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(s, dim=-1)
    p = torch.exp(s - lse.where(seen.any(1), 0)[..., None])
    o = p @ v_all
    gradients = torch.autograd.grad(o, (q, k, v), do.double())
    return [t.detach() for t in (o, lse, *gradients)]


def error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest difference, as a share of the element and the root mean square of its row, or of all.

    Rows differ in size: under a causal mask the first see few keys, which average little out.
    """
    if not expected.numel():
        return 0.0
    same = actual.double() == expected  # −∞ where it is to be
    squares = expected.where(expected.isfinite(), 0).square()
    floor = squares.mean(-1, keepdim=True).clamp(min=squares.mean()).sqrt().clamp(min=1e-3)
    difference = (actual.double() - expected).abs() / (expected.abs() + floor)
    return float(difference.where(~same, 0).max())


def correctness(flash: ModuleType, console: Console) -> bool:
    """Errors of all that the file returns, in all dtypes, with and without mask."""
    table = Table(title="largest error against float64", title_justify="left")
    names = ("o", "lse", "dq", "dk", "dv", "o decoded")
    for heading in ("B, H, G, Nq, Nk, d", "dtype", "mask", *names):
        table.add_column(heading, justify="right")
    fine = True
    for shape, dtype, causal in itertools.product(SHAPES, BOUNDS, (False, True)):
        B, H, G, Nq, Nk, d = shape
        torch.manual_seed(0)
        q, do = (torch.randn(B, H, Nq, d, device="cuda", dtype=dtype) for _ in range(2))
        k, v = (torch.randn(B, G, Nk, d, device="cuda", dtype=dtype) for _ in range(2))
        expected = exact(q, k, v, do, causal)
        o, lse = flash.attention_forward(q, k, v, causal)
        actual = [o, lse, *flash.attention_backward(q, k, v, o, lse, do, causal)]
        if not causal:
            actual.append(flash.attention_decode(q, k, v, 4)[0])
            expected.append(expected[0])
        errors = [error(a, e) for a, e in zip(actual, expected, strict=True)]
        fine &= all(e < BOUNDS[dtype] for e in errors)
        row = (str(shape), str(dtype).removeprefix("torch."), "causal" if causal else "none")
        table.add_row(*row, *(f"{e:.1e}" for e in errors))
    console.print(table)
    return fine


def timed(attention: Callable[..., torch.Tensor], leaves: list[torch.Tensor]) -> list[float]:
    """Milliseconds of a forward and of a backward pass; leaves are q, k, v and do."""
    *inputs, do = leaves
    detached = [t.detach() for t in inputs]
    forward = do_bench(lambda: attention(*detached), return_mode="median")
    o = attention(*inputs)
    backward = do_bench(
        lambda: torch.autograd.grad(o, inputs, do, retain_graph=True), return_mode="median"
    )
    return [forward, backward]


def speed(flash: ModuleType, console: Console) -> None:
    """TFLOP/s in bfloat16, beside torch's flash and cuDNN backends."""
    title = f"bfloat16, B·N = {TOKENS:,}, H·d = {WIDTH:,}: TFLOP/s, and the file's share of cuDNN's"
    table = Table(title=title, title_justify="left")
    for heading in ("d", "mask", "N"):
        table.add_column(heading, justify="right")
    for which in ("forward", "backward"):
        for heading in (which, "flash", "cuDNN", "÷ flash", "÷ cuDNN"):
            table.add_column(heading, justify="right")
    for d, causal in itertools.product((64, 128), (False, True)):
        for N in LENGTHS:
            torch.manual_seed(0)
            B, H = TOKENS // N, WIDTH // d
            leaves = [torch.randn(B, H, N, d, device="cuda", dtype=torch.bfloat16) for _ in "qkvo"]
            for leaf in leaves[:3]:
                leaf.requires_grad_()
            times = [timed(lambda q, k, v: flash.flash_attention(q, k, v, causal), leaves)]  # noqa: B023
            for backend in BACKENDS.values():
                with sdpa_kernel(backend):
                    times.append(
                        timed(
                            lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=causal),  # noqa: B023
                            leaves,
                        )
                    )
            cells = []
            for which, products in enumerate((4, 10)):
                work = products * B * H * N * N * d / (2 if causal else 1)
                rates = [work / milliseconds[which] / 1e9 for milliseconds in times]
                cells += [f"{rate:.0f}" for rate in rates]
                cells += [f"{rates[0] / rate:.2f}" for rate in rates[1:]]
            table.add_row(str(d), "causal" if causal else "none", f"{N:,}", *cells)
        table.add_section()
    console.print(table)


def decoding(flash: ModuleType, console: Console) -> None:
    """GB/s of keys and values that decoding reads, as shares of a device copy."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copy = 2 * source.numel() / do_bench(lambda: target.copy_(source), return_mode="median") / 1e6
    console.print(f"device copy: {copy:,.0f} GB/s (read + write)")
    table = Table(title="decoding, bfloat16, H = 32, G = 8, d = 128, Nq = 1", title_justify="left")
    for heading in ("B", "Nk", "n_split", "µs", "GB/s", "share"):
        table.add_column(heading, justify="right")
    for B, Nk, n_split in ((1, 65536, 64), (16, 8192, 8), (64, 8192, 4)):
        q = torch.randn(B, 32, 1, 128, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(B, 8, Nk, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        milliseconds = do_bench(
            lambda: flash.attention_decode(q, k, v, n_split),  # noqa: B023
            return_mode="median",
        )
        rate = (k.nbytes + v.nbytes) / milliseconds / 1e6
        row = (str(B), f"{Nk:,}", str(n_split), f"{milliseconds * 1e3:,.0f}", f"{rate:,.0f}")
        table.add_row(*row, f"{rate / copy:.0%}")
    console.print(table)


def main() -> None:
    """All tables; exit status 1 if a result is wrong."""
    if not torch.cuda.is_available():
        raise SystemExit("on_gpu_flash.py needs a CUDA GPU; on a CPU, `make test` checks the file")
    console = Console(width=150)
    flash = load(SOLUTION)
    console.print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    fine = correctness(flash, console)
    speed(load(SOLUTION), console)  # anew: with nothing chosen for other problems
    decoding(flash, console)
    if not fine:
        raise SystemExit("a result is further from float64 than its dtype allows")


if __name__ == "__main__":
    main()
