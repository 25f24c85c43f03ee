"""Pictures of tensors: which program touched which part, and how often a part was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mini_triton.hardware.access_map import AccessMap
from mini_triton.page.colours import of_program

_WIDTH = 260.0
_HEIGHTS = (26.0, 180.0)  # of a vector, and at most
#: Cells with numbers in them, and how many at most.
_NUMBERED = 8
#: The least room for a digit: a cell's width for each, and its height.
_DIGIT = (6.0, 11.0)


@dataclass(frozen=True)
class Rect:
    """A run of cells of one colour; a number to be written into it, or nothing."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    opacity: float = 1.0
    text: str = ""


@dataclass
class Picture:
    """One picture: `title` ("read by"), its rectangles, and what to say below."""

    title: str
    width: float
    height: float
    rects: list[Rect] = field(default_factory=list)
    note: str = ""


def pictures(found: AccessMap, programs: int) -> list[Picture]:
    """Who read, how often, and who wrote; those that say something."""
    shown = []
    if any(found.reads):
        shown.append(_owners("first reader", found, found.reader, found.last_reader, programs))
        times = [
            reads / max(1, elements)
            for reads, elements in zip(found.reads, found.elements, strict=True)
        ]
        if min(times) == max(times):
            shown[0].note += f"; all read {_often(times[0])}"
        elif max(times) > 1:
            shown.append(_times(found, times))
    if any(found.writes):
        shown.append(_owners("first writer", found, found.writer, found.last_writer, programs))
    return shown


def _owners(title: str, found: AccessMap, owner: list[int], last: int, programs: int) -> Picture:
    """The lowest program of each cell, and of all cells the range of programs."""
    picture = _empty(title, found)
    numbered = _numbered(found, picture, map(str, owner))

    def look(cell: int) -> tuple[str, float, str]:
        program = owner[cell]
        if program < 0:
            return "", 0.0, ""
        return of_program(program, programs), 1.0, str(program) if numbered else ""

    picture.rects = list(_runs(found, picture, look))
    first = min(program for program in owner if program >= 0)
    last = max(last, *owner)  # a cell has its lowest program only
    picture.note = f"program {first:,}" if first == last else f"programs {first:,} to {last:,}"
    return picture


def _times(found: AccessMap, times: list[float]) -> Picture:
    picture = _empty("times read", found)
    numbered = _numbered(found, picture, map("{:.3g}".format, times))
    most = max(times)

    def look(cell: int) -> tuple[str, float, str]:
        count = times[cell]
        if count == 0:
            return "", 0.0, ""
        # In steps of a tenth, so that cells that hardly differ are one run.
        share = round(10 * (0.15 + 0.85 * count / most)) / 10
        return "var(--load)", share, f"{count:.3g}" if numbered else ""

    picture.rects = list(_runs(found, picture, look))
    picture.note = f"{min(times):,.3g} to {_often(most)}"
    return picture


def _numbered(found: AccessMap, picture: Picture, texts: Iterable[str]) -> bool:
    """Whether cells hold numbers: if there are few, and each is large enough for the longest."""
    wide, high = picture.width / found.columns, picture.height / found.rows
    return (
        found.rows * found.columns <= _NUMBERED * _NUMBERED
        and wide >= _DIGIT[0] * max(map(len, texts))
        and high >= _DIGIT[1]
    )


def _often(times: float) -> str:
    return {1.0: "once", 2.0: "twice"}.get(times, f"{times:,.3g} times")


def _empty(title: str, found: AccessMap) -> Picture:
    """A picture as wide as all of them, and as high as the tensor's form asks for."""
    if found.rows == 1:
        return Picture(title, _WIDTH, _HEIGHTS[0])
    last = found.shape[-1]
    leading = 1
    for size in found.shape[:-1]:
        leading *= size
    height = min(max(_WIDTH * leading / max(1, last), 40.0), _HEIGHTS[1])
    return Picture(title, _WIDTH, round(height, 1))


def _runs(
    found: AccessMap, picture: Picture, look: Callable[[int], tuple[str, float, str]]
) -> Iterator[Rect]:
    """Cells, with neighbours in a row that look alike joined, unless they hold numbers."""
    wide, high = picture.width / found.columns, picture.height / found.rows
    for row in range(found.rows):
        start = 0
        for column in range(1, found.columns + 1):
            first = look(row * found.columns + start)
            here = row * found.columns + column
            if column < found.columns and not first[2] and look(here) == first:
                continue
            fill, opacity, text = first
            if fill:
                yield Rect(
                    round(start * wide, 2),
                    round(row * high, 2),
                    round((column - start) * wide, 2),
                    round(high, 2),
                    fill,
                    opacity,
                    text,
                )
            start = column
