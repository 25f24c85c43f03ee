"""The demo's plots: a layer's kernels as boxes, rooflines, and bytes by kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import demo_layers as layers
import numpy as np
from console import fmt_bytes
from console.demo import pyplot
from graph_ir import H100, Kernel, kernel_time

INK = {
    **{"matmul": "#4c72b0", "pointwise": "#dd8452", "rowwise": "#55a868"},
    **{"composite": "#8172b3", "opaque": "#c44e52"},
}
SHOWN = ("decomposed", "fused, FlashAttention")


def finish(plt: Any, figure: Any, png: Path) -> None:
    """Saves a figure, and forgets it."""
    figure.savefig(png, dpi=150)
    plt.close(figure)


def legend_of_kinds(axes: Any, kinds: Sequence[str], where: str) -> None:
    """What the colours mean."""
    from matplotlib.patches import Patch

    handles = [Patch(color=INK[kind], label=kind) for kind in INK if kind in kinds]
    axes.legend(handles=handles, loc=where, fontsize=8)


def variants(lab: ModuleType, layer: str, needed: Sequence[str]) -> dict[str, list[Kernel]]:
    """The kernels of a layer's variants; NotImplementedError if one of these is missing."""
    make, bind = layers.LAYERS[layer]
    compiler = layers.Compiler(lab)
    found = compiler.variants(make(), bind)
    if any(name not in found for name in needed):
        raise NotImplementedError(next(iter(compiler.left_out)))
    return found


# -------------------------------------------------------------------------------------------------
# The graph before and after, kernels as boxes
# -------------------------------------------------------------------------------------------------

WIDTH, LINE, GAP = 0.92, 0.3, 0.32  # of a box; of a line in it; between rows of boxes


@dataclass
class Box:
    """A kernel in the drawing: its words, and its place."""

    lines: list[str]
    kind: str
    row: int
    x: float = 0.0
    top: float = 0.0

    @property
    def height(self) -> float:
        """As many lines as it has."""
        return LINE * len(self.lines) + 0.12


def edges(kernels: Sequence[Kernel]) -> dict[tuple[int, int], int]:
    """Bytes of what one kernel stores and another needs, by their places."""
    home = {node.id: place for place, kernel in enumerate(kernels) for node in kernel.nodes}
    found: dict[tuple[int, int], int] = {}
    for place, kernel in enumerate(kernels):
        needed = {d for node in kernel.nodes for d in kernel.graph.dependencies[node.id]}
        for d in needed:
            if d in home and home[d] != place:
                pair = home[d], place
                found[pair] = found.get(pair, 0) + kernel.graph.stored_bytes(d)
    return found


def placed(kernels: Sequence[Kernel], arrows: Mapping[tuple[int, int], int]) -> list[Box]:
    """A row for each length of the longest way to a kernel; in it, close to what it depends on."""
    boxes: list[Box] = []
    for place, kernel in enumerate(kernels):
        before = [boxes[a].row for a, b in arrows if b == place]
        words = kernel.label.split(" + ")
        traffic = f"{fmt_bytes(kernel.reads)} → {fmt_bytes(kernel.writes)}"
        lines = [*words, traffic]
        boxes.append(Box(lines, kernel.kind, max(before, default=-1) + 1))
    top = 0.0
    for row in range(max(box.row for box in boxes) + 1):
        members = [place for place, box in enumerate(boxes) if box.row == row]
        wished = {}
        for place in members:
            above = [boxes[a].x for a, b in arrows if b == place]
            wished[place] = float(np.mean(above)) if above else 0.0
        members.sort(key=lambda place: (wished[place], place))
        last = -np.inf
        for place in members:
            boxes[place].x = last = max(wished[place], last + 1)
        shift = float(np.mean([boxes[place].x - wished[place] for place in members]))
        for place in members:
            boxes[place].x -= shift
            boxes[place].top = top
        top -= max(boxes[place].height for place in members) + GAP
    return boxes


def _in_the_way(box: Box, start: Box, end: Box) -> bool:
    """Whether a straight line between two others crosses a box."""
    share = (box.row - start.row) / (end.row - start.row)
    return abs(start.x + share * (end.x - start.x) - box.x) < WIDTH / 2 + 0.05


def draw_kernels(axes: Any, kernels: Sequence[Kernel], title: str) -> float:
    """Boxes, and between them lines as wide as the bytes that pass through memory.

    Returns where the lowest box ends; the first begins at 0.
    """
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
    from matplotlib.path import Path as Line

    arrows = edges(kernels)
    boxes = placed(kernels, arrows)
    most = max(arrows.values(), default=1)
    for (a, b), size in arrows.items():
        start, end = boxes[a], boxes[b]
        points = [(start.x, start.top - start.height), (end.x, end.top)]
        codes = [Line.MOVETO, Line.LINETO]
        between = [box for box in boxes if start.row < box.row < end.row]
        if any(_in_the_way(box, start, end) for box in between):
            side = max(box.x for box in (*between, start, end)) + WIDTH
            first = start.x + WIDTH / 2, start.top - start.height + LINE / 2
            last = end.x + WIDTH / 2, end.top - LINE / 2
            points = [first, (side, first[1]), (side, last[1]), last]
            codes = [Line.MOVETO, *3 * [Line.CURVE4]]
        axes.add_patch(
            FancyArrowPatch(
                path=Line(points, codes),
                arrowstyle="-|>,head_length=3,head_width=1.5",
                linewidth=0.6 + 3.4 * size / most,
                color="#555555",
                fill=False,
                alpha=0.45,
                zorder=1,
            )
        )
    for number, box in enumerate(boxes):
        axes.add_patch(
            FancyBboxPatch(
                (box.x - WIDTH / 2, box.top - box.height),
                WIDTH,
                box.height,
                boxstyle="round,pad=0,rounding_size=0.06",
                facecolor=INK[box.kind],
                edgecolor="black",
                linewidth=0.6,
                zorder=2,
            )
        )
        for k, line in enumerate(box.lines):
            y = box.top - 0.06 - LINE * (k + 0.5)
            numbers = k == len(box.lines) - 1
            axes.text(
                *(box.x, y, line),
                ha="center",
                va="center",
                color="white",
                size=5.5 if numbers else 6,
                weight="normal" if numbers else "bold",
                zorder=3,
            )
        axes.text(
            *(box.x - WIDTH / 2, box.top + 0.02, number), size=5.5, color="black", va="bottom"
        )
    left, right = (f(box.x for box in boxes) for f in (min, max))
    axes.set(xlim=(left - 0.7, right + 1.1))
    axes.set_title(title, fontsize=10)
    axes.axis("off")
    return min(box.top - box.height for box in boxes)


def plot_graph(lab: ModuleType, png: Path) -> None:
    """The prefill layer, a kernel for each operation, and fused."""
    plt = pyplot()
    (layer, *_) = layers.LAYERS
    found = variants(lab, layer, SHOWN)
    figure, both = plt.subplots(
        1, 2, figsize=(13, 15), layout="constrained", width_ratios=(1.5, 1), sharey=True
    )
    bottom = 0.0
    for axes, name in zip(both, SHOWN, strict=True):
        kernels = found[name]
        title = f"{name}: {len(kernels)} kernels, {fmt_bytes(layers.moved(kernels))}"
        bottom = min(bottom, draw_kernels(axes, kernels, title))
    both[0].set(ylim=(bottom - 0.2, 0.4))
    legend_of_kinds(both[1], _kinds({name: found[name] for name in SHOWN}), "lower right")
    figure.suptitle(
        f"A layer of Llama-3.1-8B, {layer}. Boxes are kernels, with what each loads → stores;\n"
        "lines are values that pass through memory, as wide as their bytes"
    )
    finish(plt, figure, png)


# -------------------------------------------------------------------------------------------------
# Rooflines
# -------------------------------------------------------------------------------------------------


def plot_roofline(lab: ModuleType, png: Path) -> None:
    """Operations a byte and a second of each kernel, not fused (rings) and fused.

    With its launch: a kernel below the roof waits for that longer than it works.
    """
    plt = pyplot()
    figure, both = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained", sharey=True)
    for axes, layer in zip(both, layers.LAYERS, strict=True):
        found = variants(lab, layer, SHOWN)
        intensities = np.logspace(-1.5, 4, 200)
        for peak, words in ((H100.matmul, "products"), (H100.other, "other operations")):
            axes.plot(intensities, np.minimum(peak, H100.bw * intensities), color="black", lw=0.8)
            axes.text(*(9e3, peak * 1.5, f"{words}: {peak / 1e12:.0f} TFLOP/s"), ha="right", size=8)
        named: list[tuple[float, float]] = []
        for name in SHOWN:
            fused = name == SHOWN[-1]
            for kernel in sorted(found[name], key=kernel_time, reverse=True):
                flops, moved = sum(kernel.flops), kernel.reads + kernel.writes
                if not flops:
                    continue  # a write to the cache
                time = kernel_time(kernel) + H100.launch
                x, y = flops / moved, flops / time
                size = 10 + 5e5 * time
                axes.scatter(
                    *(x, y, size),
                    facecolors=INK[kernel.kind] if fused else "none",
                    edgecolors=INK[kernel.kind],
                    alpha=0.75,
                    zorder=3,
                )
                place = float(np.log10(x)), float(np.log10(y))
                if fused and all(abs(place[0] - a) + abs(place[1] - b) > 0.6 for a, b in named):
                    named.append(place)
                    left = x > 100  # else the words would leave the plot
                    axes.annotate(
                        *(_short(kernel), (x, y)),
                        xytext=(-10, 14) if left else (8, -12),
                        textcoords="offset points",
                        ha="right" if left else "left",
                        size=7,
                        zorder=4,
                    )
        axes.set(xscale="log", yscale="log", title=f"Llama-3.1-8B, {layer}")
        axes.set(xlabel="operations a byte (areas: time)", ylim=(1e5, 2e16))
        axes.grid(alpha=0.25)
        legend_of_kinds(axes, _kinds({name: found[name] for name in SHOWN}), "lower right")
    both[0].set_ylabel(f"operations a second, launch included; {H100.name}, a model")
    figure.suptitle("Rings: decomposed, a kernel for each operation. Filled: fused, FlashAttention")
    finish(plt, figure, png)


def _kinds(found: Mapping[str, Sequence[Kernel]]) -> list[str]:
    """The kinds of these kernels."""
    return sorted({kernel.kind for kernels in found.values() for kernel in kernels})


def _short(kernel: Kernel) -> str:
    """The first operation, and how many more."""
    first, *more = kernel.label.split(" + ")
    return f"{first} + {len(more)}" if more else first


# -------------------------------------------------------------------------------------------------
# Bytes by kernel
# -------------------------------------------------------------------------------------------------


def plot_bytes(lab: ModuleType, png: Path) -> None:
    """A bar for each variant, its kernels one behind the other, in the order in which they run."""
    plt = pyplot()
    figure, both = plt.subplots(2, 1, figsize=(12, 6.5), layout="constrained")
    for axes, layer in zip(both, layers.LAYERS, strict=True):
        found = variants(lab, layer, ("eager",))
        names = list(found)[::-1]
        most = max(layers.moved(kernels) for kernels in found.values())
        for y, name in enumerate(names):
            start = 0.0
            for kernel in found[name]:
                size = kernel.reads + kernel.writes
                axes.barh(y, size, left=start, color=INK[kernel.kind], edgecolor="white", lw=0.7)
                if size > 0.09 * most:
                    axes.text(
                        *(start + size / 2, y, _short(kernel).replace(" ", "\n", 1)),
                        ha="center", va="center", color="white", size=6,
                    )  # fmt: skip
                start += size
            axes.text(start, y, f" {fmt_bytes(start)}, {len(found[name])} kernels", va="center")
        axes.set_yticks(range(len(names)), names)
        axes.set(xlim=(0, 1.3 * most), title=f"Bytes by kernel, Llama-3.1-8B, {layer}")
        axes.xaxis.set_major_formatter(lambda size, _: fmt_bytes(size))
        legend_of_kinds(axes, _kinds(found), "lower right")
    finish(plt, figure, png)
