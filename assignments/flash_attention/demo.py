"""What FlashAttention saves, counted: exact first, then its bytes by length, memory and kernel.

    python assignments/flash_attention/demo.py               the solution, or else your files
    python assignments/flash_attention/demo.py --submission starter/flash_attention --png plots

Five parts, each a table or two and what to see in them. Parts whose task is not started say so.
Runs on the simulator, on a machine with a GPU as well: it is the simulator that counts.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("TRITON_DEFAULT_BACKEND", "mini_triton")  # before triton is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is: threads are slower on small tiles

import click
import mini_triton
import numpy as np
import torch
from console import fmt_bytes, fmt_time, print_header, print_observations, print_table
from console.demo import Missing, command, load, pyplot

HALF = 2  # bytes of an element in parts 2 to 4: float16
SRAM = 100 * 1024 // HALF  # M, what FA1 counts with on an A100: 100 KB, in elements
PEAK, BANDWIDTH = 312e12, 1.555e12  # A100 40 GB: float16 FLOP/s of its tensor cores, B/s
LENGTHS = (512, 1024, 2048, 4096, 8192)


oracle = load(Path(__file__).with_name("oracle.py"))


class Submission:
    """The three files of a folder, each imported when a part first asks for it."""

    FILES = ("attention_kernels", "flash_lab", "flash_triton")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loaded: dict[str, ModuleType] = {}

    def __getattr__(self, name: str) -> ModuleType:
        if name not in self.FILES:
            raise AttributeError(name)
        if name not in self._loaded:
            self._loaded[name] = load(self.folder / f"{name}.py")
        return self._loaded[name]


def show(
    headers: Sequence[str], rows: dict[str, Callable[[], Sequence[object]]], see: Sequence[str]
) -> None:
    """A table whose rows need different tasks, by label: those not started follow below it.

    Args:
        headers: of the label, and of the cells.
        rows: what computes the cells of each.
        see: what to see in it, if there is anything.
    """
    found: list[list[object]] = []
    stubs: dict[str, list[str]] = {}
    for label, cells in rows.items():
        try:
            found.append([label, *cells()])
        except NotImplementedError as stub:
            stubs.setdefault(str(stub), []).append(label)
    if found:
        print_table(headers, found)
    for words, labels in stubs.items():
        click.echo(f"not started: {words} ({'; '.join(labels)})")
    if found:
        print_observations(see)


def largest(pairs: Iterable[tuple[object, object]]) -> float:
    """The largest error among pairs of what is returned and what is right."""
    return max(float((torch.as_tensor(a) - torch.as_tensor(b)).abs().max()) for a, b in pairs)


# -------------------------------------------------------------------------------------------------
# 1. The numbers
# -------------------------------------------------------------------------------------------------


def exactness(student: Submission) -> None:
    """Errors of both orders of task 7's loops against the definition, in float64."""
    print_header("1. Exact: largest error against the definition, float64")
    lab, rng, rows = student.flash_lab, np.random.default_rng(0), []
    shapes = ((256, 256, 64, 64, 64), (300, 300, 64, 64, 100), (77, 513, 32, 16, 50))
    for Nq, Nk, d, Br, Bc in (*shapes, (1, 1000, 64, 64, 128)):
        Q, K, V = (rng.standard_normal((n, d)) for n in (Nq, Nk, Nk))
        for causal in (False, True):
            right, _ = oracle.attention(*map(torch.from_numpy, (Q, K, V)), causal)
            errors = [
                largest([(lab.flash_fwd(Q, K, V, Br, Bc, causal, order)[0], right)])
                for order in ("fa1", "fa2")
            ]
            mask = "causal" if causal else "none"
            shape = f"Nq = {Nq}, Nk = {Nk}, d = {d}"
            rows.append([shape, f"{Br}×{Bc}", mask, *(f"{error:.1e}" for error in errors)])
    print_table(["shape", "Br×Bc", "mask", "FA1's order", "FA2's order"], rows)
    print_observations(
        [
            "FlashAttention is **no approximation**: in either order, with a mask or without, and "
            "where no block divides the length, the errors are those of rounding.",
            "Nq = 1 is a model that writes its next token. There is one block of queries, so FA2's "
            "order would keep one multiprocessor busy; part 5 splits the keys instead.",
        ]
    )


def torch_tiles(student: Submission) -> None:
    """Errors of tasks 3 to 5, and the tiles that they visit."""
    print_header("   Tiles of PyTorch tensors: 2 × 3 heads, N = 300, d = 64, blocks of 64 × 64")
    kernels = student.attention_kernels
    torch.manual_seed(0)
    q, k, v, dO = (torch.randn(2, 3, 300, 64, dtype=torch.float64) for _ in range(4))

    def forward(causal: bool) -> Callable[[], Sequence[object]]:
        def cells() -> Sequence[object]:
            stats: dict[str, int] = {}
            found = kernels.flash_forward(q, k, v, 64, 64, causal, stats=stats)
            error = largest(zip(found, oracle.attention(q, k, v, causal), strict=True))
            return f"{error:.1e}", *map(stats.get, ("tiles", "skipped", "rescales"))

        return cells

    def backward() -> Sequence[object]:
        o, L = oracle.attention(q, k, v, True)
        found = kernels.flash_backward(q, k, v, o, L, dO, 64, 64, causal=True)
        error = largest(zip(found, oracle.gradients(q, k, v, dO, True), strict=True))
        return f"{error:.1e}", None, None, None

    def decode() -> Sequence[object]:
        o, parts = kernels.flash_decode(q[..., :1, :], k, v, 8)
        error = largest([(o, oracle.attention(q[..., :1, :], k, v)[0])])
        return f"{error:.1e}", len(parts), None, None

    rows = {
        "flash_forward": forward(False),
        "flash_forward, causal": forward(True),
        "flash_backward, causal": backward,
        "flash_decode, 1 query, 8 pieces": decode,
    }
    show(
        ["function", "error", "tiles", "skipped", "rescales"],
        rows,
        [
            "A causal mask leaves out the tiles above the diagonal: not half of them, since those "
            "on it are computed in full.",
            "rescales are rows whose maximum grew. Without them the sums of different tiles would "
            "stand on different bases.",
        ],
    )


# -------------------------------------------------------------------------------------------------
# 2. Bytes against the length
# -------------------------------------------------------------------------------------------------


def standard_elements(N: int, d: int) -> int:
    """What `standard_attention` reads and writes, without making N × N matrices to find out."""
    return 4 * N * N + 4 * N * d


@cache
def counted(lab: ModuleType, N: int, d: int, Br: int, Bc: int, order: str) -> Any:
    """The IO of task 7's forward pass, run on ones."""
    ones = np.ones((N, d))
    return lab.flash_fwd(ones, ones, ones, Br, Bc, order=order)[2]


def orders_against_length(lab: ModuleType, d: int = 64) -> dict[str, tuple[int, int, str]]:
    """The blocks and orders of part 2, by their names in table and plot."""
    Br, Bc = lab.block_sizes(SRAM, d)
    return {
        f"FA1 {Br}×{Bc}": (Br, Bc, "fa1"),
        f"FA2 {Br}×{Bc}": (Br, Bc, "fa2"),
        "FA2 128×64": (128, 64, "fa2"),
    }


def against_length(student: Submission) -> None:
    """Bytes of standard attention and of FlashAttention in both orders, for N up to 8192."""
    d = 64
    print_header(f"2. Bytes against N: one head, d = {d}, SRAM of 100 KB (M = {SRAM:,}), float16")
    lab, rows, differ = student.flash_lab, [], []
    orders = orders_against_length(lab, d)
    for N in LENGTHS:
        standard = standard_elements(N, d)
        ios = [counted(lab, N, d, *order) for order in orders.values()]
        for io, order in zip(ios[:2], ("fa1", "fa2"), strict=True):
            if io.total != (formula := lab.fa_io_formula(N, d, SRAM, order)):
                differ.append(f"N = {N:,}, {order}: counted {io.total:,}, formula {formula:,}")
        first, second, wide = (io.total for io in ios)
        unit = N * N * d * d / SRAM
        rows.append(
            [
                N,
                *(fmt_bytes(HALF * n) for n in (standard, first, second, wide)),
                f"{standard / first:.1f}",
                f"{first / unit:.1f}",
                f"{second / unit:.1f}",
            ]
        )
    ratios = ["standard\n÷ FA1", "FA1 ÷\nN²d²/M", "FA2 ÷\nN²d²/M"]
    print_table(["N", "standard", *(name.replace(" ", "\n") for name in orders), *ratios], rows)
    for line in differ:
        click.echo(f"✗ flash_fwd and fa_io_formula differ in elements: {line}")
    flops = ios[1].flops / (4 * N * N * d)
    print_observations(
        [
            f"At N = {N:,} standard attention moves {standard / first:.1f} times what FA1's order "
            "does: a few times as much, not dozens. How many depends on M/d². Both grow with N²: "
            "the ratios to N²d²/M hardly change (FA1, theorem 2).",
            "FA1's order passes Q and O by once for each block of keys, FA2's order K and V once "
            f"for each block of queries. With the paper's blocks FA2's moves {second / first:.1f} "
            f"times as much, for Br is capped at d. With 128×64 it moves {wide / first:.1f} times "
            "as much, and its blocks of queries can run side by side.",
            f"The operations are the same, {flops:.3f} times standard attention's: what makes "
            "FlashAttention faster is what it doesn't move.",
        ]
    )


# -------------------------------------------------------------------------------------------------
# 3. Bytes against the SRAM
# -------------------------------------------------------------------------------------------------


def against_sram(student: Submission) -> None:
    """Bytes in both orders for SRAMs from 16 to 256 KB."""
    N, d = 4096, 64
    print_header(f"3. Bytes against SRAM: one head, N = {N:,}, d = {d}, float16")
    lab, rows, moved = student.flash_lab, [], {}
    standard = HALF * standard_elements(N, d)
    for kb in (16, 32, 64, 100, 192, 256):
        M = kb * 1024 // HALF
        Br, Bc = lab.block_sizes(M, d)
        first, second = (HALF * lab.fa_io_formula(N, d, M, order) for order in ("fa1", "fa2"))
        moved[kb] = first, second
        unit = HALF * N * N * d * d / M
        shown = (fmt_bytes(n) for n in (first, second, unit))
        rows.append([f"{kb} KB", f"{Br}×{Bc}", *shown, f"{standard / second:.1f}"])
    print_table(["SRAM", "Br×Bc", "FA1", "FA2", "N²d²/M", "standard ÷ FA2"], rows)
    print_observations(
        [
            f"Standard attention moves {fmt_bytes(standard)}, whatever the SRAM. What FA1's "
            f"order moves falls as 1/M, or nearly: {moved[16][0] / moved[256][0]:.0f} times less "
            "for 16 times the SRAM. An A100 has 192 KB a multiprocessor, an H100 256 KB.",
            f"FA2's order stays at {fmt_bytes(moved[256][1])} from 32 KB on, since Br = min(Bc, d) "
            "ends at d. Real kernels choose their blocks by what registers and tensor cores like, "
            "128×64 or 128×128.",
            "No exact algorithm moves o(N²d²/M) for every M from d to N·d (FA1, proposition 3): "
            "but for a constant factor, FA1's order is as good as can be.",
        ]
    )


# -------------------------------------------------------------------------------------------------
# 4. A roofline
# -------------------------------------------------------------------------------------------------


@cache
def gpt2_medium(lab: ModuleType) -> dict[str, tuple[Any, Any]]:
    """The IO of one head's forward and backward pass at N = 1024, d = 64, by algorithm."""
    rng = np.random.default_rng(2)
    Q, K, V, dO = rng.standard_normal((4, 1024, 64))
    _, P, forward = lab.standard_attention(Q, K, V)
    found = {"standard": (forward, lab.standard_attention_bwd(Q, K, V, P, dO)[3])}
    for Br, Bc in (lab.block_sizes(SRAM, 64), (128, 128)):
        o, L, forward = lab.flash_fwd(Q, K, V, Br, Bc)
        backward = lab.flash_bwd(Q, K, V, o, dO, L, Br, Bc)[3]
        found[f"flash {Br}×{Bc}"] = forward, backward
    return found


def roofline(student: Submission) -> None:
    """What an A100 needs at least for GPT-2 medium's attention, and what FA1 measured."""
    heads = 64 * 16
    print_header("4. GPT-2 medium, both passes: N = 1024, d = 64, 16 heads, batch 64, A100")
    rows: list[list[object]] = []
    totals = []
    for name, (forward, backward) in gpt2_medium(student.flash_lab).items():
        flops = heads * (forward.flops + backward.flops)
        moved = heads * HALF * (forward.total + backward.total)
        compute, memory = flops / PEAK, moved / BANDWIDTH
        totals.append((flops, moved, compute, memory))
        times = fmt_time(compute), fmt_time(memory), f"≥ {fmt_time(max(compute, memory))}"
        rows.append([f"{name}, counted", f"{flops / 1e9:.1f}", fmt_bytes(moved), *times])
    rows.append(["standard, measured", "66.6", "40.3 GB", None, None, "41.7 ms"])
    rows.append(["flash, measured", "75.2", "4.4 GB", None, None, "7.3 ms"])
    print_table(["", "GFLOP", "moved", "computing", "moving", "time"], rows)
    (flops, moved, compute, memory), flash, square = totals
    print_observations(
        [
            f"FlashAttention does {flash[0] / flops - 1:.0%} more operations, since its backward "
            f"pass computes S again, and moves about a third: {fmt_bytes(moved)} against "
            f"{fmt_bytes(square[1])} to {fmt_bytes(flash[1])}.",
            "In float16, at 312 TFLOP/s and 1.555 TB/s, both wait for memory: moving takes "
            f"standard attention {memory / compute:.1f} times as long as computing, FlashAttention "
            f"{square[3] / square[2]:.1f} to {flash[3] / flash[2]:.1f} times. The bound falls from "
            f"{fmt_time(memory)} to {fmt_time(square[3])} or {fmt_time(flash[3])}; measured were "
            "41.7 and 7.3 ms.",
            f"Blocks of 128×128 move {1 - square[1] / flash[1]:.0%} less than the paper's: in the "
            "forward pass K and V pass by half as often, which outweighs that Q, dO and dQ pass "
            "by more often in the backward pass.",
            "The last two rows are quoted from FA1, Figure 2 (left), not computed. The standard "
            "attention there has further kernels, for mask and dropout, and each of them moves an "
            "N × N matrix again. How the paper counts GFLOPs it does not say: of them only the "
            "ratio, 13% more, can be compared with ours.",
        ]
    )


# -------------------------------------------------------------------------------------------------
# 5. The Triton kernels
# -------------------------------------------------------------------------------------------------


def tensors(B: int, H: int, G: int, Nq: int, Nk: int, d: int) -> list[torch.Tensor]:
    """q, k, v and do, in float32."""
    torch.manual_seed(0)
    shapes = ((B, H, Nq, d), (B, G, Nk, d), (B, G, Nk, d), (B, H, Nq, d))
    return [torch.randn(shape) for shape in shapes]


def kernels_against_formulas(student: Submission) -> None:
    """Bytes that the simulator counts for each launcher, beside the formula that foretells them."""
    B, H, G, N, d, s, Br, Bc, parts = 1, 4, 2, 250, 64, 4, 64, 32, 8
    print_header(
        f"5. Kernels, counted: B = {B}, H = {H}, G = {G}, N = {N}, d = {d}, blocks of {Br} × {Bc}"
    )
    kernels = student.flash_triton
    q, k, v, do = tensors(B, H, G, N, N, d)

    def compare(foretold: int, count: int) -> Sequence[object]:
        return foretold, count, "✓" if count == foretold else "✗"

    def forward(causal: bool) -> Callable[[], Sequence[object]]:
        def cells() -> Sequence[object]:
            K_rows = oracle.key_rows(N, N, Br, Bc, causal)
            with mini_triton.profile(host=False) as p:
                kernels.attention_forward(q, k, v, causal, Br=Br, Bc=Bc)
            foretold = B * H * ((N + 2 * K_rows) * d * s + N * (d * s + 4))
            return compare(foretold, p.loaded_bytes + p.stored_bytes)

        return cells

    def backward(causal: bool) -> Callable[[], Sequence[object]]:
        def cells() -> Sequence[object]:
            K_rows = oracle.key_rows(N, N, Br, Bc, causal)
            Q_rows = oracle.query_rows(N, N, Br, Bc, causal)
            o, lse = (t.float() for t in oracle.attention(q, k, v, causal))
            with mini_triton.profile(host=False) as p:
                kernels.attention_backward(q, k, v, o, lse, do, causal, Br=Br, Bc=Bc)
            foretold = B * H * N * (2 * d * s + 4)  # D
            foretold += 4 * B * G * N * d * s + B * H * Q_rows * (2 * d * s + 8)  # dK, dV
            foretold += B * H * (N * (3 * d * s + 8) + 2 * K_rows * d * s)  # dQ
            return compare(foretold, p.loaded_bytes + p.stored_bytes)

        return cells

    def decode() -> Sequence[object]:
        with mini_triton.profile(host=False) as p:
            kernels.attention_decode(q[:, :, :1], k, v, parts)
        states = parts * B * H * (d + 2) * 4
        foretold = 2 * B * G * N * d * s + parts * B * H * d * s + 2 * states + B * H * (d * s + 4)
        return compare(foretold, p.loaded_bytes + p.stored_bytes)

    rows = {
        "attention_forward": forward(False),
        "attention_forward, causal": forward(True),
        "attention_backward": backward(False),
        "attention_backward, causal": backward(True),
        f"attention_decode, 1 query, {parts} parts": decode,
    }
    show(
        ["launcher", "bytes foretold", "bytes counted", ""],
        rows,
        [
            "Every float32 that is loaded or stored, and not masked, by the formulas of the "
            "README: N = 250 fills no whole number of blocks, and of a causal mask's tiles the "
            "kernels skip those without a visible key.",
        ],
    )


def unfused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention by PyTorch's operations: S and P are written to memory, and read again."""
    return (q @ k.mT * (1 / math.sqrt(q.shape[-1]))).softmax(-1) @ v


def step_unfused(N: int, d: int) -> int:
    """Bytes that PyTorch's operations move in a forward and a backward pass of one head."""
    q, k, v, do = tensors(1, 1, 1, N, N, d)
    leaves = [t.requires_grad_() for t in (q, k, v)]
    with mini_triton.profile() as p:
        torch.autograd.grad(unfused(*leaves), leaves, do)
    return p.host_loaded_bytes + p.host_stored_bytes


def step_flash(kernels: ModuleType, N: int, d: int, Br: int, Bc: int) -> int:
    """Bytes that the kernels of tasks 9 and 10 move in a forward and a backward pass."""
    q, k, v, do = tensors(1, 1, 1, N, N, d)
    with mini_triton.profile(host=False) as p:
        o, lse = kernels.attention_forward(q, k, v, Br=Br, Bc=Bc)
        kernels.attention_backward(q, k, v, o, lse, do, Br=Br, Bc=Bc)
    return p.loaded_bytes + p.stored_bytes


def every_tensor_once(N: int, d: int) -> int:
    """Bytes if each pass loaded each input once and stored each result once."""
    forward = 4 * N * d + N  # q, k, v; o, lse
    backward = 8 * N * d + N  # q, k, v, o, do, lse; dq, dk, dv
    return 4 * (forward + backward)


def kernels_against_pytorch(student: Submission) -> None:
    """What a whole step moves, by PyTorch's operations and by the kernels."""
    d, lengths = 64, (512, 1024, 2048)
    print_header(f"   A whole step, forward and backward: one head, d = {d}, float32")
    kernels = student.flash_triton
    ways: dict[str, Callable[[int], int]] = {
        "PyTorch operations": lambda N: step_unfused(N, d),
        "kernels, 32×32": lambda N: step_flash(kernels, N, d, 32, 32),
        "kernels, 64×64": lambda N: step_flash(kernels, N, d, 64, 64),
        "every tensor once": lambda N: every_tensor_once(N, d),
    }
    moved = {name: [way(N) for N in lengths] for name, way in ways.items()}
    once = moved["every tensor once"][-1]
    rows = [
        [name, *map(fmt_bytes, counts), f"{counts[-1] / once:.1f}×"]
        for name, counts in moved.items()
    ]
    print_table(["", *(f"N = {N:,}" for N in lengths), "ratio"], rows)
    unfused_bytes, small, large, _ = (counts[-1] for counts in moved.values())
    print_observations(
        [
            f"At N = {lengths[-1]:,}, PyTorch's operations move {unfused_bytes / large:.1f} times "
            f"what the kernels do with blocks of 64×64, and {unfused_bytes / small:.1f} times with "
            "32×32: half the block, twice the passes. In memory they also need the N × N matrices, "
            "which the kernels never make.",
            "On a GPU many of the kernels' loads are served by the L2 cache, where K and V of a "
            "head fit; the N × N matrices don't.",
        ]
    )


# -------------------------------------------------------------------------------------------------
# Plots
# -------------------------------------------------------------------------------------------------

INK = {"standard": "#444444", "FA1": "#c44e52", "FA2": "#4c72b0", "wide": "#55a868"}


def plain_numbers(axis: Any, ticks: Sequence[float]) -> None:
    """Ticks of a logarithmic axis, written out: 0.1, 10 and 1,000 instead of powers of ten."""
    axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def plot_length(student: Submission, png: Path) -> None:
    """Bytes of one head's forward pass against N."""
    plt, lab, d = pyplot(), student.flash_lab, 64
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    lengths = (256, *LENGTHS)
    mb = HALF / 1e6
    standard = [mb * standard_elements(N, d) for N in lengths]
    axes.plot(lengths, standard, "s-", color=INK["standard"], label="standard")
    styles = (("o-", INK["FA1"]), ("o-", INK["FA2"]), ("^--", INK["wide"]))
    for (name, order), (style, ink) in zip(
        orders_against_length(lab, d).items(), styles, strict=True
    ):
        moved = [mb * counted(lab, N, d, *order).total for N in lengths]
        axes.plot(lengths, moved, style, color=ink, label=name)
    once = [mb * (4 * N * d + N) for N in lengths]
    axes.plot(lengths, once, ":", color="black", label="every tensor once")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    plain_numbers(axes.xaxis, lengths)
    plain_numbers(axes.yaxis, (0.1, 1, 10, 100, 1000))
    axes.set(
        xlabel="N, queries and keys",
        ylabel="MB read and written",
        title=f"Attention, forward, one head, d = {d}, float16, SRAM of 100 KB",
    )
    axes.grid(alpha=0.25)
    axes.legend()
    figure.savefig(png, dpi=150)
    plt.close(figure)


def plot_sram(student: Submission, png: Path) -> None:
    """Bytes of one head's forward pass against the SRAM, with the line of the lower bound."""
    plt, lab, N, d = pyplot(), student.flash_lab, 4096, 64
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    sizes = [2 ** (3 + step / 4) for step in range(25)]  # 8 to 512 KB
    elements = [int(kb * 1024 / HALF) for kb in sizes]
    mb = HALF / 1e6
    axes.axhline(mb * standard_elements(N, d), color=INK["standard"], label="standard")
    for order, name in (("fa1", "FA1"), ("fa2", "FA2")):
        moved = [mb * lab.fa_io_formula(N, d, M, order) for M in elements]
        axes.plot(sizes, moved, "o-", ms=4, color=INK[name], label=f"{name}'s order")
    unit = [mb * N * N * d * d / M for M in elements]
    axes.plot(sizes, unit, "--", color="black", label="N²d²/M")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    plain_numbers(axes.xaxis, [2**k for k in range(3, 10)])
    plain_numbers(axes.yaxis, (1, 10, 100))
    for kb, name in ((100, "FA1's M"), (192, "A100"), (256, "H100")):
        axes.axvline(kb, color="gray", lw=0.8, ls=":")
        axes.annotate(
            name,
            (kb, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            rotation=90,
            color="gray",
        )
    axes.set(
        xlabel="SRAM, KB",
        ylabel="MB read and written",
        title=f"Attention, forward, one head, N = {N:,}, d = {d}, float16",
    )
    axes.grid(alpha=0.25)
    axes.legend()
    figure.savefig(png, dpi=150)
    plt.close(figure)


def plot_roofline(student: Submission, png: Path) -> None:
    """An A100's roofline, and where each pass of part 4 stands under it."""
    plt, passes = pyplot(), gpt2_medium(student.flash_lab)
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    ridge = PEAK / BANDWIDTH
    axes.plot(
        [10, ridge, 1000],
        [BANDWIDTH * 10 / 1e12, PEAK / 1e12, PEAK / 1e12],
        color="black",
        label="A100: 312 TFLOP/s, 1.555 TB/s",
    )
    inks = (INK["standard"], INK["FA2"], INK["wide"])
    for (name, ios), ink in zip(passes.items(), inks, strict=True):
        for way, marker, io in zip(("forward", "backward"), "os", ios, strict=True):
            intensity = io.flops / (HALF * io.total)
            reached = min(PEAK, intensity * BANDWIDTH) / 1e12
            axes.plot(
                intensity, reached, marker, color=ink, ms=9, mec="white", label=f"{name}, {way}"
            )
            axes.annotate(
                f"{intensity:.0f}",
                (intensity, reached),
                xytext=(-7, 5),
                textcoords="offset points",
                ha="right",
                color=ink,
            )
    axes.axvline(ridge, color="gray", lw=0.8, ls=":")
    axes.annotate(
        f"{ridge:.0f} FLOP per byte",
        (ridge, 240),
        xytext=(6, 0),
        textcoords="offset points",
        color="gray",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_numbers(axes.xaxis, (10, 20, 50, 100, 200, 500, 1000))
    plain_numbers(axes.yaxis, (20, 50, 100, 200, 312))
    axes.set(
        xlabel="FLOP per byte",
        ylabel="TFLOP/s at most",
        title="Attention of GPT-2 medium: N = 1024, d = 64, float16",
    )
    axes.grid(alpha=0.25)
    axes.legend(loc="lower right")
    figure.savefig(png, dpi=150)
    plt.close(figure)


PLOTS = {
    "bytes_against_n.png": plot_length,
    "bytes_against_sram.png": plot_sram,
    "roofline.png": plot_roofline,
}

# -------------------------------------------------------------------------------------------------

PARTS = (
    exactness,
    torch_tiles,
    against_length,
    against_sram,
    roofline,
    kernels_against_formulas,
    kernels_against_pytorch,
)


def opened(path: Path) -> Submission:
    """The files of a folder, or those beside a file."""
    folder = path.parent if path.is_file() else path
    if not any((folder / f"{name}.py").is_file() for name in Submission.FILES):
        names = ", ".join(f"{name}.py" for name in Submission.FILES)
        raise Missing(f"there is none of {names} in {folder}")
    click.echo(f"Running the files in {folder}")
    return Submission(folder)


main = command(__file__, __doc__, opened, PARTS, PLOTS)

if __name__ == "__main__":
    main()
