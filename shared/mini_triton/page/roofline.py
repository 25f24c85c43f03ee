"""The roofline plot: operations a second against operations per byte of DRAM, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from mini_triton.groups import Group
from mini_triton.hardware.gpu import Gpu
from mini_triton.hardware.roofline import peak

_WIDTH, _HEIGHT = 680.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 84.0, 18.0, 16.0, 44.0
_UNITS = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))


@dataclass(frozen=True)
class Roof:
    """A line of the plot: `points` as SVG takes them, and its label with place and turn."""

    points: str
    label: str
    x: float
    y: float
    turn: float


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Point:
    """A group of launches."""

    number: int
    label: str
    x: float
    y: float


@dataclass
class Plot:
    """All of it, in the SVG's units."""

    width: float = _WIDTH
    height: float = _HEIGHT
    left: float = _LEFT
    right: float = _WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = _HEIGHT - _BOTTOM
    roofs: list[Roof] = field(default_factory=list)
    xs: list[Tick] = field(default_factory=list)
    ys: list[Tick] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    without: list[str] = field(default_factory=list)  # labels of groups that compute nothing
    unfit: list[str] = field(default_factory=list)  # labels of groups that the GPU cannot run


def plot(groups: Iterable[Group], gpu: Gpu) -> Plot:
    """The plot of launches that were modelled on `gpu`."""
    found = Plot()
    places: list[tuple[Group, float, float]] = []
    precisions: set[str] = set()
    for group in groups:
        hardware = group.launch.hardware
        if hardware is None:
            continue
        if not hardware.fits:
            found.unfit.append(group.label)
            continue
        if not hardware.flops or not hardware.dram_bytes:
            found.without.append(group.label)
            continue
        intensity = hardware.flops / hardware.dram_bytes
        places.append((group, intensity, hardware.flops / hardware.time))
        precisions |= hardware.products.keys() | hardware.others.keys()
    roofs = sorted({(peak(gpu, p), p) for p in precisions or {"fp32"}})
    ridge = roofs[-1][0] / gpu.chip.mem_bw
    low_x = _decade(min([x for _, x, _ in places] + [1.0]), -1)
    high_x = _decade(max([x for _, x, _ in places] + [ridge * 2]), 1)
    low_y = _decade(min([y for _, _, y in places] + [low_x * gpu.chip.mem_bw]), -1)
    high_y = _decade(roofs[-1][0], 1)

    def across(x: float) -> float:
        span = math.log(high_x / low_x)
        return round(found.left + math.log(x / low_x) / span * (found.right - found.left), 1)

    def up(y: float) -> float:
        span = math.log(high_y / low_y)
        return round(found.bottom - math.log(y / low_y) / span * (found.bottom - found.top), 1)

    begin = max(low_x, low_y / gpu.chip.mem_bw)
    slope = [(across(begin), up(begin * gpu.chip.mem_bw)), (across(ridge), up(roofs[-1][0]))]
    turn = math.degrees(math.atan2(slope[1][1] - slope[0][1], slope[1][0] - slope[0][0]))
    where = 0.42
    found.roofs.append(
        Roof(
            " ".join(f"{x},{y}" for x, y in slope),
            f"DRAM {gpu.chip.mem_bw / 1e12:.3g} TB/s",
            round(slope[0][0] + where * (slope[1][0] - slope[0][0]), 1),
            round(slope[0][1] + where * (slope[1][1] - slope[0][1]) - 7, 1),
            round(turn, 1),
        )
    )
    by_height: dict[float, list[str]] = {}
    for height, precision in roofs:
        by_height.setdefault(height, []).append(precision)
    for height, names in by_height.items():
        y = up(height)
        corner = across(height / gpu.chip.mem_bw)
        found.roofs.append(
            Roof(
                f"{corner},{y} {found.right},{y}",
                f"{', '.join(names)} {_rate(height)}",
                found.right - 4,
                y - 6,
                0,
            )
        )
    found.xs = [Tick(across(x), _plain(x)) for x in _decades(low_x, high_x)]
    found.ys = [Tick(up(y), _rate(y)) for y in _decades(low_y, high_y)]
    taken: list[tuple[float, float]] = []
    for group, x, y in places:
        at = [across(x), up(y)]
        while any(abs(at[0] - a) < 15 and abs(at[1] - b) < 15 for a, b in taken):
            at[0] += 16  # beside those that lie on the same spot
        taken.append((at[0], at[1]))
        found.points.append(Point(group.number, group.label, round(at[0], 1), at[1]))
    return found


def _decade(value: float, direction: int) -> float:
    """The next power of ten at or beyond `value`."""
    exact = math.log10(value)
    return 10.0 ** (math.floor(exact) if direction < 0 else math.ceil(exact))


def _decades(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    return [10.0**n for n in range(first, last + 1)]


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _rate(value: float) -> str:
    for size, unit in _UNITS:
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} FLOP/s"
