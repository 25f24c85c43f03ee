"""The log as a picture: one row a device, time from left to right.

A row's upper half shows what the device sends, its lower half, paler, what it receives. Colours are
labels. While it computes, grey in the upper half, a device sends nothing, but messages may arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from comm_sim.display import device_name
from comm_sim.network import SWITCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from comm_sim.comm import Comm

#: How wide a letter is, as a part of the axes: texts that do not fit into their bars are left out.
_LETTER = 0.009
_HALF = 0.42
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def timeline(comm: Comm, target: str | Path | Axes) -> Axes:
    """Draws the messages and the work of a network; see `Comm.timeline`."""
    if isinstance(target, (str, Path)):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(12, 1.6 + 0.42 * comm.topology.n), layout="constrained")
        axes = figure.add_subplot()
        _draw(comm, axes)
        figure.savefig(target, dpi=150)
        return axes
    _draw(comm, target)
    return target


def _draw(comm: Comm, axes: Axes) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Patch

    end = comm.time or 1e-6
    unit, name = next(((u, s) for u, s in _UNITS if end >= u), _UNITS[-1])
    messages, work = comm.messages, comm.work
    labels = list(dict.fromkeys(message.label for message in messages))
    palette = colormaps["tab10" if len(labels) <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    colours = {label: palette[i % len(palette)] for i, label in enumerate(labels)}

    def bar(
        row: int, top: float, start: float, stop: float, colour: object, alpha: float = 1
    ) -> None:
        axes.broken_barh(
            [(start / unit, (stop - start) / unit)],
            (row + top, _HALF),
            facecolor=colour,
            alpha=alpha,
            edgecolor="white",
            linewidth=0.6,
        )

    def write(row: int, middle: float, start: float, stop: float, text: str, colour: str) -> None:
        if stop - start >= _LETTER * len(text) * end:
            centre = (start + stop) / 2 / unit
            axes.text(centre, row + middle, text, ha="center", va="center", size=7, color=colour)

    for message in messages:
        colour, times = colours[message.label], (message.start, message.end)
        if message.src != SWITCH:
            bar(message.src, -_HALF, *times, colour)
            write(message.src, -_HALF / 2, *times, f"→ {device_name(message.dst)}", "white")
        if message.dst != SWITCH:
            bar(message.dst, 0, *times, colour, alpha=0.4)
            write(message.dst, _HALF / 2, *times, f"← {device_name(message.src)}", "black")
    for item in work:
        bar(item.device, -_HALF, item.start, item.end, "0.75")
        write(item.device, -_HALF / 2, item.start, item.end, item.label, "black")

    axes.set_xlim(0, 1.01 * end / unit)
    axes.set_ylim(comm.topology.n - 0.5, -0.5)  # device 0 on top
    axes.set_yticks(range(comm.topology.n), [f"device {i}" for i in range(comm.topology.n)])
    axes.set_xlabel(f"time in {name}")
    axes.set_title(_title(comm), loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    handles = [Patch(color=colours[label], label=label or "message") for label in labels]
    handles += [Patch(color="0.75", label="computing")] if work else []
    if handles:
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8
        )


def _title(comm: Comm) -> str:
    ops = _unique(call.label for call in comm.calls)
    return f"{comm.topology.name}: {', '.join(ops)}" if ops else comm.topology.name


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
