"""The kernels' source, line by line, with bytes moved and sectors asked for."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass

from mini_triton.groups import Group

#: Lines shown around a line that moved bytes; gaps of no more than `_GAP` lines are shown, too.
_CONTEXT, _GAP = 3, 24


@dataclass
class Line:
    """A line of source.

    Attributes:
        number: from 1; 0 for a gap.
        text: of the line.
        loaded, stored: bytes, over all launches.
        sectors, ideal: asked for, and enough, over all launches.
        heat: bytes, as a share of the file's hottest line, 0 to 1.
    """

    number: int
    text: str = ""
    loaded: int = 0
    stored: int = 0
    sectors: int = 0
    ideal: int = 0
    heat: float = 0.0

    @property
    def moves(self) -> bool:
        """Whether it moved bytes."""
        return bool(self.loaded or self.stored)

    @property
    def efficiency(self) -> float | None:
        """Ideal sectors over those asked for; None if nothing was modelled."""
        return self.ideal / self.sectors if self.sectors else None


def listing(groups: Iterable[Group]) -> dict[str, list[Line]]:
    """The lines to show of each file."""
    files: dict[str, dict[int, Line]] = {}
    for group in groups:
        for (file, number), traffic in group.launch.lines.items():
            line = files.setdefault(file, {}).setdefault(number, Line(number))
            line.loaded += traffic.loaded_bytes * group.times
            line.stored += traffic.stored_bytes * group.times
        hardware = group.launch.hardware
        for access in hardware.accesses if hardware else ():
            line = files.setdefault(access.file, {}).setdefault(access.line, Line(access.line))
            line.sectors += access.sectors * group.times
            line.ideal += access.ideal * group.times
    return {file: _shown(file, lines) for file, lines in sorted(files.items())}


def _shown(file: str, moved: dict[int, Line]) -> list[Line]:
    hottest = max((line.loaded + line.stored for line in moved.values()), default=0)
    for line in moved.values():
        line.heat = (line.loaded + line.stored) / max(1, hottest)
    source = linecache.getlines(file)
    shown: list[Line] = []
    last = 0
    for number in sorted(moved):
        begin = max(1, number - _CONTEXT)
        if last and begin - last <= _GAP:
            begin = last + 1
        elif shown:
            shown.append(Line(0))
        end = min(max(len(source), number), number + _CONTEXT)
        for n in range(max(begin, last + 1), end + 1):
            line = moved.get(n) or Line(n)
            line.text = source[n - 1].rstrip() if n <= len(source) else ""
            shown.append(line)
        last = max(last, end)
    return shown
