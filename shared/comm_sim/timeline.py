"""The log as a picture: one row a device, time from left to right.

A row's upper half shows what the device sends, its lower half, paler, what it receives. Colours are
labels. While it computes, grey in the upper half, a device sends nothing, but messages may arrive.
A device with several ports may send or receive several at once: then they share the height.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comm_sim.display import device_name
from comm_sim.network import SWITCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from comm_sim.comm import Comm

#: How wide a letter is, as a part of the axes: texts that do not fit into their bars are left out.
_LETTER = 0.009
_HALF = 0.42
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_GREY = "0.75"


@dataclass(frozen=True)
class _Bar:
    device: int
    receives: bool
    start: float
    end: float
    colour: Any
    text: str


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
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    end = comm.time or 1e-6
    unit, name = next(((u, s) for u, s in _UNITS if end >= u), _UNITS[-1])
    labels = list(dict.fromkeys(message.label for message in comm.messages))
    palette = colormaps["tab10" if len(labels) <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    colours = {label: palette[i % len(palette)] for i, label in enumerate(labels)}

    corners: dict[tuple[Any, bool], list[list[tuple[float, float]]]] = {}
    for bar, lane, lanes in _in_lanes(list(_bars(comm, colours))):
        height = _HALF / lanes
        top = bar.device + (0 if bar.receives else -_HALF) + lane * height
        left, right = bar.start / unit, bar.end / unit
        corners.setdefault((bar.colour, bar.receives), []).append(
            [(left, top), (right, top), (right, top + height), (left, top + height)]
        )
        if bar.end - bar.start >= _LETTER * len(bar.text) * end and lanes <= 3:
            axes.text(
                (left + right) / 2,
                top + height / 2,
                bar.text,
                color="black" if bar.receives or bar.colour == _GREY else "white",
                size=7 if lanes == 1 else 5,
                ha="center",
                va="center",
            )
    for (colour, receives), several in corners.items():  # all of a colour at once: much faster
        paler = 0.4 if receives else 1
        axes.add_collection(
            PolyCollection(several, facecolor=colour, alpha=paler, edgecolor="white", linewidth=0.6)
        )

    axes.set_xlim(0, 1.01 * end / unit)
    axes.set_ylim(comm.topology.n - 0.5, -0.5)  # device 0 on top
    axes.set_yticks(range(comm.topology.n), [f"device {i}" for i in range(comm.topology.n)])
    axes.set_xlabel(f"time in {name}")
    ops = ", ".join(dict.fromkeys(call.label for call in comm.calls))
    axes.set_title(f"{comm.topology.name}: {ops}" if ops else comm.topology.name, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    handles = [Patch(color=colours[label], label=label or "message") for label in labels]
    handles += [Patch(color=_GREY, label="computing")] if comm.work else []
    if handles:
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8
        )


def _bars(comm: Comm, colours: dict[str, Any]) -> Iterator[_Bar]:
    """One bar where a message is sent and one where it arrives, and one for each work."""
    for m in comm.messages:
        if m.src != SWITCH:
            to = f"→ {device_name(m.dst)}"
            yield _Bar(m.src, False, m.start, m.end, colours[m.label], to)
        if m.dst != SWITCH:
            origin = f"← {device_name(m.src)}"
            yield _Bar(m.dst, True, m.start, m.end, colours[m.label], origin)
    for work in comm.work:
        yield _Bar(work.device, False, work.start, work.end, _GREY, work.label)


def _in_lanes(bars: list[_Bar]) -> Iterator[tuple[_Bar, int, int]]:
    """(bar, its lane, lanes there): bars of one half of a row that overlap get lanes of their own.

    In order of time, each bar takes the first lane that is free again. How many lanes there are is
    settled anew wherever none is in use.
    """
    cluster: list[tuple[_Bar, int]] = []
    free: list[float] = []  # when each lane is free again
    half = None
    for bar in sorted(bars, key=lambda bar: (bar.device, bar.receives, bar.start, bar.end)):
        if half != (bar.device, bar.receives) or bar.start >= max(free):
            yield from ((done, lane, len(free)) for done, lane in cluster)
            cluster, free, half = [], [], (bar.device, bar.receives)
        lane = next((i for i, until in enumerate(free) if until <= bar.start), len(free))
        free[lane : lane + 1] = [bar.end]
        cluster.append((bar, lane))
    yield from ((done, lane, len(free)) for done, lane in cluster)
