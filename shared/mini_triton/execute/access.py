"""Where a tile of pointers points: a strided window of a buffer, or a list of offsets.

Most accesses of real kernels are affine (`row * stride + column`), so that a tile is a strided view of
its buffer and needs no gather. Affinity is found by looking at the offsets themselves, term by term: the
terms of a `Pointer` are small as long as rows and columns have not been added up.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from mini_triton.execute.values import Pointer

Tensor = torch.Tensor


@dataclass(frozen=True)
class Window:
    """An affine tile: element `offset + Σ indexᵢ·strideᵢ`; an axis of stride 0 has size 1."""

    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def lowest(self) -> int:
        """The smallest element offset in the window."""
        return self.offset + sum(
            min(0, (n - 1) * s) for n, s in zip(self.size, self.stride, strict=True)
        )

    @property
    def highest(self) -> int:
        """The largest element offset in the window."""
        return self.offset + sum(
            max(0, (n - 1) * s) for n, s in zip(self.size, self.stride, strict=True)
        )

    def within(self, numel: int) -> bool:
        """True if every lane is inside a buffer of `numel` elements and strides are not negative."""
        return self.lowest >= 0 and self.highest < numel and min(self.stride, default=0) >= 0

    def has_distinct_lanes(self, shape: tuple[int, ...]) -> bool:
        """True if no two lanes of the full `shape` are the same element."""
        reach = 0
        for n, s in sorted(zip(self.size, self.stride, strict=True), key=lambda pair: pair[1]):
            if n > 1:
                if s <= reach:
                    return False
                reach += (n - 1) * s
        return self.size == shape

    def of(self, flat: Tensor) -> Tensor:
        """The window as a view of a flat tensor."""
        return flat.as_strided(self.size, self.stride, flat.storage_offset() + self.offset)

    def first(self, count: int) -> Window:
        """The window cut to the first `count` lanes of its last axis."""
        return Window(self.offset, (*self.size[:-1], min(count, self.size[-1])), self.stride)


def window(pointer: Pointer) -> Window | None:
    """The window that the pointers form, None if they do not form one."""
    size = [1] * pointer.ndim
    stride = [0] * pointer.ndim
    offset = 0
    for term in pointer.terms:
        found = _affine(term)
        if found is None:
            return None
        start, steps = found
        offset += start
        for axis, step in steps.items():
            size[axis], stride[axis] = term.shape[axis], step
    return Window(offset, tuple(size), tuple(stride))


def _affine(term: Tensor) -> tuple[int, dict[int, int]] | None:
    """(value at the origin, step along each axis of size > 1), None if `term` is not affine."""
    if term.numel() == 0:
        return None
    axes = [axis for axis, size in enumerate(term.shape) if size > 1]
    origin = (0,) * term.ndim
    corner = [term[origin]]
    for axis in axes:
        corner.append(term[tuple(int(a == axis) for a in range(term.ndim))])
    start, *nexts = torch.stack(corner).tolist()
    steps = {axis: value - start for axis, value in zip(axes, nexts, strict=True)}
    expected = None
    for axis in axes:
        line = torch.arange(term.shape[axis], dtype=torch.int64).mul_(steps[axis])
        line = line.reshape([-1 if a == axis else 1 for a in range(term.ndim)])
        expected = line if expected is None else expected + line
    if expected is not None and not torch.equal(term - start, expected.expand(term.shape)):
        return None
    return start, steps


def leading_lanes(mask: Tensor) -> int | None:
    """n if the mask is the same everywhere but along its last axis and true for the first n lanes."""
    if any(size > 1 for size in mask.shape[:-1]):
        return None
    line = mask.reshape(-1)
    count = int(line.sum())
    return count if bool(line[:count].all()) else None
