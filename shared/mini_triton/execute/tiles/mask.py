"""Masks held as formulas: the lanes between two bounds on each axis of a tile.

`offs < n` with an index formula on the left is such a mask, and so is an `&` of some on different
axes. Held like that it is counted without a lane, and the accesses that it guards stay strided
views: of the whole tile where it is true everywhere, else of boxes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from mini_triton.execute.tiles.affine import Affine

Tensor = torch.Tensor
#: A mask is on in few lanes if no more than one of so many is.
_FEW = 16
#: A bound of an axis: one for all programs, or int64 (P,).
Bound = int | np.ndarray
#: (first lane that is on, first that is off again), or None for an axis that is on throughout.
Range = tuple[Bound, Bound] | None


@dataclass(frozen=True)
class Box:
    """Lanes of the programs from number `start` to `end` of a chunk: `ranges` along each axis."""

    start: int
    end: int
    ranges: tuple[tuple[int, int] | None, ...]


class Mask:
    """A mask as a formula; nobody changes one.

    Args:
        ranges: what is on along each axis.
        sizes: of the axes; 1 where the whole axis is on.
        on: programs that take part: all, none, or bool (P,).
    """

    __slots__ = ("_dense", "on", "ranges", "sizes")

    def __init__(
        self, ranges: tuple[Range, ...], sizes: tuple[int, ...], on: bool | np.ndarray = True
    ) -> None:
        self.ranges = ranges
        self.sizes = sizes
        self.on = on
        self._dense: Tensor | None = None

    @property
    def decided(self) -> bool | None:
        """True or False if it is that in every lane of every program."""
        if self.on is False:
            return False
        return True if self.on is True and not any(self.ranges) else None

    @property
    def dense(self) -> Tensor:
        """The lanes, bool (1 or P, *sizes)."""
        if self._dense is None:
            rank = len(self.sizes)
            on = np.asarray(self.on).reshape(-1, *(1,) * rank)
            for axis, (bounds, size) in enumerate(zip(self.ranges, self.sizes, strict=True)):
                if bounds is not None:
                    index = np.arange(size, dtype=np.int32)
                    index = index.reshape(*(-1 if a == axis else 1 for a in range(rank)))
                    first, last = (np.int32(b).reshape(-1, *(1,) * rank) for b in bounds)
                    # One comparison for two: as unsigned, what is below `first` is very large.
                    inside = (index - first).view(np.uint32) < (last - first).view(np.uint32)
                    on = on & inside
            self._dense = torch.from_numpy(np.ascontiguousarray(on))
        return self._dense

    def count(self, shape: tuple[int, ...], programs: int) -> int:
        """How many lanes of a tile of `shape` are on, over all programs."""
        each: int | np.ndarray = math.prod(
            [n for n, bounds in zip(shape, self.ranges, strict=True) if bounds is None]
        )
        for bounds in self.ranges:
            if bounds is not None:
                each = each * (bounds[1] - bounds[0])
        if self.on is not True:
            each = each * np.asarray(self.on)
        return each * programs if isinstance(each, int) else int(_each(each, programs).sum())

    def select(self, a: Tensor, b: Tensor) -> Tensor | None:
        """`a` where the mask is on, else `b`, if it is on in few lanes; None if it is not.

        a, b: broadcastable to (P, *tile), b full along the only axis that has bounds.
        """
        bounded = [axis for axis, bounds in enumerate(self.ranges) if bounds is not None]
        if self.on is not True or len(bounded) != 1 or b.dtype.itemsize == 1:
            return None
        axis = bounded[0] + 1
        first, last = self.ranges[bounded[0]] or (0, 0)
        programs = max(a.shape[0], b.shape[0], np.size(first), np.size(last))
        lengths = _each(np.asarray(last - first), programs)
        count = int(lengths.sum())
        if b.shape[axis] == 1 or count * _FEW > programs * b.shape[axis]:
            return None
        shape = [max(m, n) for m, n in zip(a.shape, b.shape, strict=True)]
        shape[0] = programs
        result = b.expand(shape).clone(memory_format=torch.contiguous_format)
        if count:
            program = np.repeat(np.arange(programs), lengths)
            before = np.repeat(lengths.cumsum() - lengths, lengths)
            lane = _each(np.asarray(first), programs)[program] + np.arange(count) - before
            at = (torch.from_numpy(program), torch.from_numpy(lane))
            result.movedim(axis, 1)[at] = a.expand(shape).movedim(axis, 1)[at]
        return result

    def both(self, other: Mask) -> Mask:
        """The lanes that are on in both."""
        ranges = tuple(
            [
                b if a is None else a if b is None else _common(a, b)
                for a, b in zip(self.ranges, other.ranges, strict=True)
            ]
        )
        sizes = tuple([max(m, n) for m, n in zip(self.sizes, other.sizes, strict=True)])
        if self.on is True or other.on is True:
            return Mask(ranges, sizes, other.on if self.on is True else self.on)
        if self.on is False or other.on is False:
            return decided(False, len(sizes))
        return Mask(ranges, sizes, self.on & other.on)

    def boxes(self, programs: int, most: int) -> list[Box] | None:
        """The lanes that are on as boxes, in program order; None if there are more than `most`."""
        columns = [b for bounds in self.ranges if bounds is not None for b in bounds]
        if self.on is not True:
            columns.append(np.asarray(self.on))
        starts = [0]
        varying = [c for c in columns if isinstance(c, np.ndarray) and c.ndim]
        if varying:
            changes = np.zeros(programs - 1, bool)
            for column in varying:
                full = _each(column, programs)
                changes |= full[1:] != full[:-1]
            breaks = np.flatnonzero(changes)
            if len(breaks) >= most:
                return None
            starts += (breaks + 1).tolist()
        found = []
        for start, end in zip(starts, [*starts[1:], programs], strict=True):
            ranges = tuple(
                [b if b is None else (_at(b[0], start), _at(b[1], start)) for b in self.ranges]
            )
            if _at(self.on, start) and all(b is None or b[0] < b[1] for b in ranges):
                found.append(Box(start, end, ranges))
        return found

    def splat(self, rank: int) -> Mask:
        """A scalar in all lanes of a tile."""
        return Mask((None,) * rank, (1,) * rank, self.on)

    def expand_dims(self, axis: int) -> Mask:
        """A new axis, on throughout."""
        ranges = (*self.ranges[:axis], None, *self.ranges[axis:])
        return Mask(ranges, (*self.sizes[:axis], 1, *self.sizes[axis:]), self.on)

    def transpose(self, order: tuple[int, ...]) -> Mask:
        """Axis i of the result is axis order[i]."""
        ranges, sizes = self.ranges, self.sizes
        return Mask(tuple(ranges[i] for i in order), tuple(sizes[i] for i in order), self.on)

    def narrow(self, index: Tensor) -> Mask:
        """The mask of the programs at the positions `index`."""
        positions = index.numpy()

        def some(value: Bound) -> Bound:
            many = isinstance(value, np.ndarray) and len(value) > 1
            return value[positions] if many else value  # type: ignore[index]

        ranges = tuple(b if b is None else (some(b[0]), some(b[1])) for b in self.ranges)
        on = self.on if isinstance(self.on, bool) else np.asarray(some(self.on))
        return Mask(ranges, self.sizes, on)


def decided(answer: bool, rank: int) -> Mask:
    """The same in every lane."""
    return Mask((None,) * rank, (1,) * rank, answer)


def below_zero(difference: Affine) -> Mask | None:
    """Where a formula is negative; None if that depends on several axes, or is far from 0."""
    low, high = difference.bounds
    rank = len(difference.steps)
    if high < 0 or low >= 0:
        return decided(high < 0, rank)
    axes = [axis for axis, step in enumerate(difference.steps) if step]
    if len(axes) > 1 or difference.far:
        return None
    base = difference.base
    start = base if isinstance(base, int) else base.numpy()
    if not axes:
        on = start < 0
        assert isinstance(on, np.ndarray)
        return Mask((None,) * rank, (1,) * rank, on)
    axis = axes[0]
    step, size = difference.steps[axis], difference.sizes[axis]
    first: Bound = 0
    last: Bound = size
    if step > 0:  # base + step·i < 0: i < −base / step
        last = _clipped(-(start // step), size)
    else:  # i > base / −step
        first = _clipped(start // -step + 1, size)
    ranges: tuple[Range, ...] = tuple((first, last) if a == axis else None for a in range(rank))
    return Mask(ranges, difference.sizes)


def is_zero(difference: Affine, negated: bool = False) -> Mask | None:
    """Where a formula is zero (negated: is not); None if that is no box of lanes."""
    low, high = difference.bounds
    rank = len(difference.steps)
    if low > 0 or high < 0 or low == high:
        return decided((low == high == 0) != negated, rank)
    axes = [axis for axis, step in enumerate(difference.steps) if step]
    if len(axes) > 1 or (axes and negated) or difference.far:
        return None
    base = difference.base
    start = base if isinstance(base, int) else base.numpy()
    if not axes:
        return Mask((None,) * rank, (1,) * rank, np.asarray(start == 0) != negated)
    axis = axes[0]
    step, size = difference.steps[axis], difference.sizes[axis]
    lane = -start // step
    found = (-start % step == 0) & (lane >= 0) & (lane < size)
    first = _clipped(lane, size)
    last: Bound = first + int(found) if isinstance(found, bool) else first + found.astype(np.int64)
    return Mask(tuple((first, last) if a == axis else None for a in range(rank)), difference.sizes)


def _clipped(bound: Bound, size: int) -> Bound:
    if isinstance(bound, int):
        return min(max(bound, 0), size)
    clipped = bound.clip(0, size)
    first = int(clipped[0])
    return first if (clipped == first).all() else clipped


def _common(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """The lanes of both ranges; an empty one ends where it begins."""
    bounds = (*a, *b)
    if isinstance(bounds[0], int) and all(isinstance(bound, int) for bound in bounds):
        first = max(a[0], b[0])
        return first, max(first, min(a[1], b[1]))
    lanes = np.maximum(a[0], b[0])
    return lanes, np.maximum(lanes, np.minimum(a[1], b[1]))


def _at(bound: Bound | bool, program: int) -> int:
    if isinstance(bound, np.ndarray):
        return int(bound[program if len(bound) > 1 else 0])
    return int(bound)


def _each(bound: np.ndarray, programs: int) -> np.ndarray:
    return np.broadcast_to(bound, (programs,))
