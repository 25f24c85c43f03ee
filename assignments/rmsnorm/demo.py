"""What the fused RMSNorm saves, measured: right numbers first, then the bytes of every step.

    python assignments/rmsnorm/demo.py                              the solution, or else your file
    python assignments/rmsnorm/demo.py --submission starter/rmsnorm --png bytes.png

Runs on the simulator, on a machine with a GPU as well: it is the simulator that counts.
"""

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

os.environ.setdefault("TRITON_DEFAULT_BACKEND", "mini_triton")  # before triton is imported

import click
import mini_triton
import torch
from console.demo import default_submission, load, module_of, pyplot
from rich.console import Console
from rich.table import Table

EPS = 1e-5
PROGRAMS = 16  # of the persistent backward

console = Console()


oracle = load(Path(__file__).with_name("oracle.py"))


def unfused(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """The one-liner: every operation in it reads and writes whole tensors."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * g


def inputs(M: int, N: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (M, N) and g (N,), which want gradients, and dy (M, N), in float32."""
    torch.manual_seed(0)
    x, g, dy = torch.randn(M, N), torch.randn(N), torch.randn(M, N)
    return x.requires_grad_(), g.requires_grad_(), dy


# -------------------------------------------------------------------------------------------------
# 1. The numbers
# -------------------------------------------------------------------------------------------------


def differences(student: ModuleType) -> Table:
    """Largest errors of y, dx and dg, in float32, against autograd of the definition in float64."""
    table = Table("x", "y", "dx", "dg", title="Largest difference from autograd")
    for shape in ((4, 16, 64), (37, 100), (2, 3, 513)):
        torch.manual_seed(0)
        x = torch.randn(shape, requires_grad=True)
        g = torch.randn(shape[-1], requires_grad=True)
        dy = torch.randn(shape)
        y = student.RMSNorm.apply(x, g, EPS)
        dx, dg = torch.autograd.grad(y, (x, g), dy)
        expected = (oracle.rmsnorm(x, g, EPS), *oracle.gradients(x, g, dy, EPS))
        errors = [
            float((got.detach() - want.detach()).abs().max())
            for got, want in zip((y, dx, dg), expected, strict=True)
        ]
        table.add_row(str(shape), *(f"{error:.1e}" for error in errors))
    return table


# -------------------------------------------------------------------------------------------------
# 2. Loads and stores against the formulas
# -------------------------------------------------------------------------------------------------


def counts(student: ModuleType, M: int = 256, N: int = 1024, P: int = PROGRAMS) -> Table:
    """Elements that each kernel loads and stores, beside the formula that foretells them."""
    x, g, dy = inputs(M, N)
    x, g = x.detach(), g.detach()
    table = Table(
        *("kernel", "", "formula", "foretold", "counted"),
        title=f"Elements at M = {M}, N = {N}, P = {P}",
    )
    for column in table.columns[3:]:
        column.justify = "right"

    def row(kernel: str, way: str, formula: str, foretold: int, counted: int) -> None:
        mark = "[green]✓[/]" if foretold == counted else "[red]✗[/]"
        table.add_row(kernel, way, formula, f"{foretold:,}", f"{counted:,} {mark}")

    with mini_triton.profile(host=False) as p:
        _, r = student.rmsnorm_forward(x, g, EPS)
    row("forward", "loaded", "2·M·N", 2 * M * N, p.loaded)
    row("", "stored", "M·N + M", M * N + M, p.stored)
    table.add_section()
    with mini_triton.profile(host=False) as p:
        student.rmsnorm_backward(x, g, r, dy)
    row("backward", "loaded", "3·M·N + M", 3 * M * N + M, p.loaded)
    row("", "stored", "2·M·N", 2 * M * N, p.stored)
    table.add_section()
    with mini_triton.profile(host=False) as p:
        student.rmsnorm_backward_persistent(x, g, r, dy, P)
    row("persistent backward", "loaded", "2·M·N + P·N + M", 2 * M * N + P * N + M, p.loaded)
    row("", "stored", "M·N + P·N", M * N + P * N, p.stored)
    return table


# -------------------------------------------------------------------------------------------------
# 3. Bytes of a whole step: forward, backward, and the sum over dg_partial
# -------------------------------------------------------------------------------------------------


Step = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]


def step_unfused(x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor) -> object:
    """Forward and backward by PyTorch's own operations."""
    return torch.autograd.grad(unfused(x, g), (x, g), dy)


def step_fused(student: ModuleType) -> Step:
    """Forward and backward by the kernels of tasks 1 and 2."""

    def step(x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor) -> object:
        return torch.autograd.grad(student.rmsnorm(x, g, EPS), (x, g), dy)

    return step


def step_persistent(student: ModuleType) -> Step:
    """Forward by task 1, backward by task 4."""

    def step(x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor) -> object:
        x, g = x.detach(), g.detach()
        _, r = student.rmsnorm_forward(x, g, EPS)
        dx, dg_partial = student.rmsnorm_backward_persistent(x, g, r, dy, PROGRAMS)
        return dx, dg_partial.sum(0)

    return step


def bytes_of(step: Step, M: int, N: int) -> tuple[int, int]:
    """(loaded, stored): what kernels and PyTorch's operations move in a step, in bytes."""
    given = inputs(M, N)
    with mini_triton.profile() as p:
        step(*given)
    return p.loaded_bytes + p.host_loaded_bytes, p.stored_bytes + p.host_stored_bytes


def steps(student: ModuleType) -> dict[str, Step]:
    """The three ways to do a step, the dearest first."""
    return {
        "PyTorch operations": step_unfused,
        "one row a program": step_fused(student),
        f"persistent, P = {PROGRAMS}": step_persistent(student),
    }


def comparison(student: ModuleType, M: int = 256, N: int = 1024) -> Table:
    """What a whole step moves, against what it would if it touched every tensor once."""
    table = Table(
        *("", "loaded MB", "stored MB", "ratio"),
        title=f"Forward and backward, {M} × {N}, float32",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for name, step in steps(student).items():
        loaded, stored = bytes_of(step, M, N)
        ratio = (loaded + stored) / sum(every_tensor_once(M, N))
        table.add_row(name, f"{loaded / 1e6:.2f}", f"{stored / 1e6:.2f}", f"{ratio:.2f}×")
    table.add_section()
    loaded, stored = every_tensor_once(M, N)
    table.add_row("every tensor once", f"{loaded / 1e6:.2f}", f"{stored / 1e6:.2f}", "1.00×")
    return table


def every_tensor_once(M: int, N: int) -> tuple[int, int]:
    """(loaded, stored) bytes if each pass loaded each input once and stored each result once."""
    forward = M * N + N, M * N + M  # x, g; y, r
    backward = 2 * M * N + N + M, M * N + N  # x, dy, g, r; dx, dg
    return 4 * (forward[0] + backward[0]), 4 * (forward[1] + backward[1])


def plot(student: ModuleType, png: Path, M: int = 256) -> None:
    """Bytes of a whole step against N, from 64 to 4096, as a PNG."""
    plt = pyplot()
    widths = [2**k for k in range(6, 13)]
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, step in steps(student).items():
        axes.plot(widths, [sum(bytes_of(step, M, N)) / 1e6 for N in widths], "o-", label=name)
    axes.plot(
        widths,
        [sum(every_tensor_once(M, N)) / 1e6 for N in widths],
        "k--",
        label="every tensor once",
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(widths, [f"{N:,}" for N in widths])
    axes.set(
        xlabel="N, columns",
        ylabel="MB loaded and stored",
        title=f"RMSNorm, forward and backward, {M} rows, float32",
    )
    axes.grid(which="both", alpha=0.25)
    axes.legend()
    figure.savefig(png, dpi=150)
    plt.close(figure)


# -------------------------------------------------------------------------------------------------


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option(
    "--submission",
    type=click.Path(path_type=Path),
    default=None,
    help="rmsnorm.py, or the folder that holds it.  [default: the solution, or else the starter]",
)
@click.option(
    "--png", type=click.Path(dir_okay=False, path_type=Path), help="Where to save the plot."
)
def main(submission: Path | None, png: Path | None) -> None:
    """Prints three tables and, if asked, saves a plot; tasks not started end it with a word."""
    student = module_of("rmsnorm")(submission or default_submission(Path(__file__)))
    console.print()
    try:
        for part in (differences, counts, comparison):
            console.print(part(student), "")
        if png is not None:
            plot(student, png)
            console.print(f"Saved {png}")
    except NotImplementedError as stub:
        raise click.ClickException(f"not started: {stub}") from None


if __name__ == "__main__":
    main()
