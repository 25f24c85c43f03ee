"""Where a tile of pointers points, when its offsets are a formula: windows of a buffer.

A tile of one program is a strided window. Over the programs of a chunk the windows start at `base`:
at equal distances (`row * stride`), so that all of them are one strided view, or anywhere (tiles of
a matrix), one view each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from mini_triton.execute.affine import Affine
from mini_triton.execute.shared_tiles import Sharing, sharing
from mini_triton.execute.values import Pointer

Tensor = torch.Tensor

#: With more programs than this at irregular places, one gather is faster than a view each.
_MOST_VIEWS = 512


@dataclass(frozen=True)
class Windows:
    """Strided windows of a flat buffer, one a program.

    starts: the first offset of each program; only that of the first if they are `step` apart (0,
    with programs = 1: one window for all). size, stride: of a tile; an axis of stride 0 has size 1.
    sharing: if programs have windows in common, which has which; `programs` then counts windows.
    """

    starts: list[int]
    step: int | None
    programs: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    lowest: int
    highest: int
    sharing: Sharing | None = None

    def within(self, numel: int) -> bool:
        """True if all lanes are inside a buffer of `numel` elements."""
        return self.lowest >= 0 and self.highest < numel

    def distinct_lanes(self, shape: tuple[int, ...]) -> bool:
        """True if no two lanes of one program's full tile are the same element."""
        return self.size == shape and _apart(list(zip(self.stride, self.size, strict=True)))

    @property
    def distinct_programs(self) -> bool:
        """True if the tiles of an equidistant run surely share no element."""
        axes = [*zip(self.stride, self.size, strict=True), (self.step or 0, self.programs)]
        return self.step is not None and _apart(axes)

    def of(self, flat: Tensor) -> list[Tensor]:
        """The views: one of shape (programs, *size), or one of (1, *size) a program."""
        origin = flat.storage_offset()
        if self.step is not None:
            size, stride = (self.programs, *self.size), (self.step, *self.stride)
            return [flat.as_strided(size, stride, origin + self.starts[0])]
        size, stride = (1, *self.size), (0, *self.stride)
        return [flat.as_strided(size, stride, origin + start) for start in self.starts]

    def moved(self, by: int) -> Windows:
        """The windows that lie `by` elements further on."""
        return Windows(
            [start + by for start in self.starts],
            self.step,
            self.programs,
            self.size,
            self.stride,
            self.lowest + by,
            self.highest + by,
            self.sharing,
        )

    def first(self, count: int) -> Windows:
        """The windows cut to the first `count` lanes of their last axis."""
        last, step = self.size[-1], self.stride[-1]
        if count >= last:
            return self
        cut = (last - count) * step
        return Windows(
            self.starts,
            self.step,
            self.programs,
            (*self.size[:-1], count),
            self.stride,
            self.lowest,
            self.highest - cut,
            self.sharing,
        )


def windows(pointer: Pointer, shared: bool = False) -> Windows | None:
    """The windows that the pointers form, None if their offsets are no formula.

    shared: each distinct window only once, if there are at most half as many as programs.
    """
    if pointer.rest is not None:
        return None
    if pointer.offset.moved_from is None:
        return _windows(pointer.offset, shared)
    origin, by = pointer.offset.moved_from
    if shared not in origin.memo:
        origin.memo[shared] = _windows(origin, shared)
    found = origin.memo[shared]
    return found and found.moved(by)


def _windows(offset: Affine, shared: bool) -> Windows | None:
    if any(step < 0 for step in offset.steps):
        return None
    size, stride = offset.sizes, offset.steps
    reach = sum(s * (n - 1) for s, n in zip(stride, size, strict=True))
    if isinstance(offset.base, int):
        return Windows([offset.base], 0, 1, size, stride, offset.base, offset.base + reach)
    starts = offset.base.numpy()
    programs, step = len(starts), _distance(starts)
    if step is None and shared:
        distinct, index = np.unique(starts, return_inverse=True)
        if 2 * len(distinct) <= len(starts):
            lowest, highest = int(distinct[0]), int(distinct[-1]) + reach
            programs, step = len(distinct), _distance(distinct) if len(distinct) > 1 else 0
            if step is None and programs > _MOST_VIEWS:
                return None
            listed = distinct.tolist() if step is None else [lowest]
            among = sharing(programs, index) if programs > 1 else None
            return Windows(listed, step, programs, size, stride, lowest, highest, among)
    if step is not None:
        first, last = int(starts[0]), int(starts[-1])
        return Windows([first], step, programs, size, stride, first, last + reach)
    if programs > _MOST_VIEWS:
        return None
    listed = starts.tolist()
    return Windows(listed, None, programs, size, stride, min(listed), max(listed) + reach)


def _distance(starts: np.ndarray) -> int | None:
    """By how much each start is above the one before, if that is always the same."""
    apart = np.diff(starts)
    if len(apart) and apart[0] > 0 and (apart == apart[0]).all():
        return int(apart[0])
    return None


def _apart(axes: list[tuple[int, int]]) -> bool:
    """True if (stride, size) axes reach no element twice: each strides over all smaller ones."""
    reach = 0
    for stride, size in sorted(axes):
        if size > 1:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
    return True


def leading_lanes(mask: Tensor) -> int | None:
    """n if the mask varies along its last axis only and is true for just its first n lanes."""
    if any(size > 1 for size in mask.shape[:-1]):
        return None
    line = mask.reshape(-1)
    count = int(line.sum())
    return count if bool(line[:count].all()) else None
