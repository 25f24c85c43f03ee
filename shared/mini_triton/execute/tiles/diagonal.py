"""Masks over several axes of a tile that are no box: `cols <= rows`, the lanes below a diagonal.

The diagonal crosses the tiles of few programs; those of the others lie on one side of it. Only
where it crosses are lanes looked at.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from mini_triton.execute.tiles.affine import Affine

Tensor = torch.Tensor

#: Formulas within this are compared as int32, which is quicker.
_NEAR = 2**29


class Diagonal:
    """The lanes in which `base + Σ stepₐ·indexₐ` is negative; nobody changes one.

    Args:
        base: one a program, int64 (1 or P,).
        steps: along each axis of the tile.
        sizes: of the axes, 1 where the step is 0.
        near: whether all lanes surely are.
    """

    __slots__ = ("_dense", "base", "near", "sizes", "steps")

    def __init__(
        self, base: np.ndarray, steps: tuple[int, ...], sizes: tuple[int, ...], near: bool
    ) -> None:
        self.base = base
        self.steps = steps
        self.sizes = sizes
        self.near = near
        self._dense: Tensor | None = None

    @property
    def dense(self) -> Tensor:
        """The lanes, bool (1 or P, *sizes)."""
        if self._dense is None:
            first = int(self.base[0])
            if (self.base == first).all():
                self._dense = _one(first, self.steps, self.sizes, self.near)
            else:
                self._dense = _lanes(self.base, self.steps, self.sizes, self.near)
        return self._dense

    def narrow(self, index: Tensor) -> Diagonal:
        """The mask of the programs at the positions `index`."""
        if len(self.base) == 1:
            return self
        return Diagonal(self.base[index.numpy()], self.steps, self.sizes, self.near)

    def select(self, a: Tensor, b: Tensor) -> Tensor | None:
        """`a` where the mask is on, else `b`; None where that is better found lane by lane.

        a: (P, *tile), all axes full.
        """
        programs = len(self.base)
        if programs == 1 or len(a) != programs or a.dtype.itemsize == 1:  # no index_copy_ of those
            return None
        ends = [step * (size - 1) for step, size in zip(self.steps, self.sizes, strict=True)]
        off = self.base >= -sum(min(end, 0) for end in ends)
        crossed = (self.base >= -sum(max(end, 0) for end in ends)) & ~off
        if 2 * np.count_nonzero(crossed) > programs:
            return None
        result = a
        for some, masked in ((crossed, True), (off, False)):
            index = torch.from_numpy(np.flatnonzero(some))
            if not len(index):
                continue
            other = b if b.shape[0] == 1 else b.index_select(0, index)
            if masked:
                other = torch.where(self.narrow(index).dense, a.index_select(0, index), other)
            result = a.clone() if result is a else result
            result.index_copy_(0, index, other.expand(len(index), *a.shape[1:]))
        return result


@lru_cache(maxsize=16)
def _one(base: int, steps: tuple[int, ...], sizes: tuple[int, ...], near: bool) -> Tensor:
    """The lanes of one program, (1, *sizes): a kernel that has them has them often."""
    return _lanes(np.asarray([base]), steps, sizes, near)


def _lanes(base: np.ndarray, steps: tuple[int, ...], sizes: tuple[int, ...], near: bool) -> Tensor:
    rank = len(steps)
    dtype = np.dtype(np.int32 if near else np.int64)
    left = base.astype(dtype).reshape(-1, *(1,) * rank)
    right = np.zeros((1,) * (rank + 1), dtype)
    for axis, (step, size) in enumerate(zip(steps, sizes, strict=True)):
        if step:
            line = (np.arange(size) * step).astype(dtype)
            line = line.reshape(*(-1 if a == axis else 1 for a in range(rank)))
            if axis < rank - 1:
                left = left + line
            else:
                right = right - line
    return torch.from_numpy(left < right)


def below_diagonal(difference: Affine) -> Diagonal | None:
    """Where a formula of several axes is negative; None if it may be too far from 0 to tell."""
    low, high = difference.bounds
    if difference.far:
        return None
    base = difference.base
    numbers = np.asarray([base]) if isinstance(base, int) else base.numpy()
    return Diagonal(numbers, difference.steps, difference.sizes, min(low, -high) >= -_NEAR)
