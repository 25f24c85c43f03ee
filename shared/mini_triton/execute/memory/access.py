"""Where a tile of pointers points, when its offsets are a formula: windows of a buffer.

A tile of one program is a strided window. Over the programs of a chunk the windows start at even
distances (`row * stride`, or rows and columns of a grid of tiles), so that all of them are one
strided view, or anywhere: then they are some of the windows of such a view.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from mini_triton.execute.tiles.coordinate import Digits, spread_of
from mini_triton.execute.tiles.mask import Box
from mini_triton.execute.tiles.shared_tiles import Sharing
from mini_triton.execute.tiles.values import Pointer
from mini_triton.ir.types import INTEGER_OF_SIZE

Tensor = torch.Tensor

#: Where tiles overlap, they are stored one by one, in order; with more of them than this, one
#: scatter of all lanes is faster.
_MOST_STORES = 512
#: With more programs than this at uneven distances, their starts are better not listed.
_MOST_LISTED = 4096


@dataclass(slots=True)
class Windows:
    """Strided windows of a flat buffer, one a program.

    starts: the first offset of each program; only that of the first program if `digits` tell how
    the others go up from it (() where all have the same window, and programs = 1). size, stride: of
    a tile; an axis of stride 0 has size 1. reach: from the first to the last element of a tile.
    sharing: if programs have windows in common, which has which; `programs` then counts windows.
    """

    starts: list[int]
    digits: Digits | None
    programs: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    reach: int
    sharing: Sharing | None = None

    @property
    def lowest(self) -> int:
        """The first element that a window holds."""
        return min(self.starts)

    @property
    def highest(self) -> int:
        """The last element that a window holds."""
        further = sum([step * (count - 1) for count, step in self.digits or ()])
        return max(self.starts) + further + self.reach

    def within(self, numel: int) -> bool:
        """True if all lanes are inside a buffer of `numel` elements."""
        return self.lowest >= 0 and self.highest < numel

    def distinct_lanes(self, shape: tuple[int, ...]) -> bool:
        """True if no two lanes of one program's full tile are the same element."""
        return self.size == shape and _apart(list(zip(self.stride, self.size, strict=True)))

    @property
    def distinct_programs(self) -> bool:
        """True if the tiles of all programs surely share no element."""
        if self.digits is None:
            return False
        axes = [*zip(self.stride, self.size, strict=True)]
        return _apart([*axes, *((step, count) for count, step in self.digits)])

    @property
    def scattered(self) -> bool:
        """True if the tiles of all programs stand at uneven distances and share no element."""
        if self.digits is not None:
            return False
        starts = sorted(self.starts)
        step = math.gcd(*[start - starts[0] for start in starts])
        distinct = all(one < next for one, next in itertools.pairwise(starts))
        axes = [*zip(self.stride, self.size, strict=True), (step, len(starts))]
        return distinct and _apart(axes)

    @property
    def one_view(self) -> bool:
        """True if `read` returns a view of the buffer, not a copy."""
        return self.digits is not None and len(self.digits) < 2

    def view(self, flat: Tensor) -> Tensor:
        """The windows that `digits` describe, (*counts of the digits or 1, *size)."""
        digits = self.digits or ((1, 0),)
        return flat.as_strided(
            (*[count for count, _ in digits], *self.size),
            (*[step for _, step in digits], *self.stride),
            flat.storage_offset() + self.starts[0],
        )

    def each(self, flat: Tensor) -> list[Tensor]:
        """The windows one by one, each (1, *size)."""
        origin, size, stride = flat.storage_offset(), (1, *self.size), (0, *self.stride)
        return [flat.as_strided(size, stride, origin + start) for start in self._all_starts()]

    def picked(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Evenly spaced windows (n, *size) among which these are, and which these are, (programs,).

        One view for windows anywhere: their starts are multiples of some step apart.
        """
        starts = self._all_starts()
        first = min(starts)
        apart = [start - first for start in starts]
        step = math.gcd(*apart)
        which = torch.tensor(apart) // max(step, 1)
        size, stride = (max(apart) // max(step, 1) + 1, *self.size), (step, *self.stride)
        bits = flat.view(torch.int8) if flat.dtype.itemsize == 1 else flat  # index_* lack 8 bits
        return bits.as_strided(size, stride, flat.storage_offset() + first), which

    def read(self, flat: Tensor) -> Tensor:
        """The elements, (programs, *size): a view of the buffer where they are one."""
        if self.digits is None:
            view, which = self.picked(flat)
            return view.index_select(0, which).view(flat.dtype)
        view = self.view(flat)
        return view if self.one_view else view.reshape(self.programs, *self.size)

    def read_into(self, flat: Tensor, target: Tensor) -> None:
        """Copies the elements into `target`, (programs, *size)."""
        if self.digits is not None and len(self.digits) > 1:
            target.unflatten(0, [count for count, _ in self.digits]).copy_(self.view(flat))
        else:
            target.copy_(self.read(flat))

    def writer(self) -> Callable[[Tensor, Tensor], None] | None:
        """What stores to a flat buffer a value that is broadcastable to (programs, *size).

        The last program wins. None if that would be slow: for very many programs, one by one.
        """
        if self.programs == 1:
            return self._write_one
        if self.distinct_programs:
            return self._write_view
        if self.scattered:
            return self._write_picked
        return self._write_each if self.programs <= _MOST_STORES else None

    def _write_one(self, flat: Tensor, value: Tensor) -> None:
        self.view(flat).copy_(value[-1:])

    def _write_view(self, flat: Tensor, value: Tensor) -> None:
        assert self.digits is not None
        counts = [count for count, _ in self.digits]
        if len(counts) > 1:
            ones = (1,) * (len(counts) - 1)
            many = value.shape[0] > 1
            value = value.unflatten(0, counts) if many else value.reshape(*ones, *value.shape)
        self.view(flat).copy_(value)

    def _write_picked(self, flat: Tensor, value: Tensor) -> None:
        carrier = INTEGER_OF_SIZE[flat.element_size()]
        view, which = self.picked(flat.view(carrier))  # numpy copies whole rows, torch does not
        view.numpy()[which.numpy()] = value.view(carrier).numpy()

    def _write_each(self, flat: Tensor, value: Tensor) -> None:
        for program, view in enumerate(self.each(flat)):
            view[0].copy_(value[program if value.shape[0] > 1 else 0])

    def cut(self, box: Box) -> Windows:
        """The windows of a box's programs, cut to its lanes."""
        if not any(box.ranges) and box.end - box.start >= self.programs:
            return self
        size, shift, reach = list(self.size), 0, self.reach
        for axis, bounds in enumerate(box.ranges):
            if bounds is not None and self.stride[axis]:
                first, last = bounds
                shift += first * self.stride[axis]
                reach -= (self.size[axis] - (last - first)) * self.stride[axis]
                size[axis] = last - first
        starts, digits, programs = self.starts, self.digits, self.programs
        if self.sharing is None and programs > 1 and box.end - box.start < programs:
            starts, programs = self._all_starts()[box.start : box.end], box.end - box.start
            if digits is not None and len(digits) == 1:
                starts, digits = starts[:1], ((programs, digits[0][1]),)
            else:
                digits = None
        if shift:
            starts = [start + shift for start in starts]
        return Windows(starts, digits, programs, tuple(size), self.stride, reach, self.sharing)

    def _all_starts(self) -> list[int]:
        starts = self.starts
        for count, step in self.digits or ():
            starts = [start + step * digit for start in starts for digit in range(count)]
        return starts


def windows(pointer: Pointer, shared: bool = False) -> Windows | None:
    """The windows that the pointers form, None if their offsets are no formula.

    shared: each distinct window only once, if there are at most half as many as programs.
    """
    offset = pointer.offset
    if pointer.rest is not None or any(step < 0 for step in offset.steps):
        return None
    size, stride, start = offset.sizes, offset.steps, offset.start
    reach = sum([s * (n - 1) for s, n in zip(stride, size, strict=True)])
    if not offset.terms:
        return Windows([start], (), 1, size, stride, reach)
    spread = spread_of(offset.terms)
    distinct = spread.distinct
    if distinct is not None and (shared or distinct.count == 1):
        spread = distinct
    if spread.digits is not None:
        starts = [start + spread.first]
    elif spread.count <= _MOST_LISTED:
        starts = [start + number for number in spread.numbers]
    else:
        return None
    return Windows(starts, spread.digits, spread.count, size, stride, reach, spread.sharing)


def _apart(axes: list[tuple[int, int]]) -> bool:
    """True if (stride, size) axes reach no element twice: each strides over all smaller ones."""
    reach = 0
    for stride, size in sorted(axes):
        if size > 1:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
    return True
