"""What of a tensor a launch has touched: distinct elements, and a small picture of who did.

The picture has cells: the tensor's elements as a matrix (a vector as one row; leading axes of a
larger tensor as more rows), downsampled to at most `MOST_ROWS` × `MOST_COLUMNS`. A cell has how
many elements were read and written there, over all programs, and the lowest program that did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mini_triton.execute.values import Buffer

Array = np.ndarray

MOST_ROWS, MOST_COLUMNS = 32, 64


@dataclass
class AccessMap:
    """A picture of one tensor, cells row by row.

    Attributes:
        rows, columns: of cells.
        shape: of the tensor.
        elements: that a cell stands for.
        reads, writes: of elements, over all programs.
        reader, writer: lowest program that did; −1: none.
    """

    rows: int
    columns: int
    shape: tuple[int, ...]
    elements: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    reader: list[int] = field(default_factory=list)
    writer: list[int] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "shape": list(self.shape)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AccessMap:
        """What `to_dict` described."""
        return cls(**{**data, "shape": tuple(data["shape"])})


class Touched:
    """Collects for one buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self._item = buffer.flat.element_size()
        numel = buffer.flat.numel()
        self.loaded = np.zeros(numel, bool)
        self.stored = np.zeros(numel, bool)
        cells = self._grid[0] * self._grid[1]
        self._counts = {kind: np.zeros(cells, np.int64) for kind in ("reads", "writes")}
        self._lowest = {
            kind: np.full(cells, np.iinfo(np.int64).max) for kind in ("reads", "writes")
        }

    @property
    def loaded_bytes(self) -> int:
        """Of distinct elements that were loaded."""
        return int(self.loaded.sum()) * self._item

    @property
    def stored_bytes(self) -> int:
        """Of distinct elements that were stored."""
        return int(self.stored.sum()) * self._item

    def tiles(
        self, programs: Array, base: Array, lanes: Array, item: int, reads: bool, writes: bool
    ) -> None:
        """Tiles of the same form: elements of `item` bytes at `base + lanes`, for each program."""
        # Programs that touch the same tile are looked at once; the lowest of them stands for all.
        starts, first, times = np.unique(base, return_index=True, return_counts=True)
        lowest = programs[first]
        where = starts[:, None] + lanes
        self._add(
            np.repeat(lowest, len(lanes)),
            where.reshape(-1),
            np.repeat(times, len(lanes)),
            item,
            reads,
            writes,
        )

    def elements(self, programs: Array, where: Array, item: int, reads: bool, writes: bool) -> None:
        """Single elements of `item` bytes, each with its program."""
        self._add(programs, where, np.ones(len(where), np.int64), item, reads, writes)

    def _add(
        self, programs: Array, where: Array, times: Array, item: int, reads: bool, writes: bool
    ) -> None:
        if item > self._item:  # a pointer cast: it touches several of the tensor's elements
            ratio = item // self._item
            where = (where[:, None] * ratio + np.arange(ratio)).reshape(-1)
            programs, times = np.repeat(programs, ratio), np.repeat(times, ratio)
        elif item < self._item:
            where = where // (self._item // item)
        cells = self._cell[where]
        lowest = np.full(len(self._counts["reads"]), np.iinfo(np.int64).max)
        order = np.argsort(-programs, kind="stable") if (np.diff(programs) < 0).any() else None
        if order is None:
            lowest[cells[::-1]] = programs[::-1]  # of equal cells, the last assignment stays
        else:
            lowest[cells[order]] = programs[order]
        totals = np.bincount(cells, weights=times, minlength=len(lowest)).astype(np.int64)
        for kind, touches, marks in (
            ("reads", reads, self.loaded),
            ("writes", writes, self.stored),
        ):
            if touches:
                marks[where] = True
                self._counts[kind] += totals
                np.minimum(self._lowest[kind], lowest, out=self._lowest[kind])

    # ------------------------------------------------------------------ the picture
    @cached_property
    def _matrix(self) -> tuple[int, int]:
        """(rows, columns) of the tensor's elements."""
        shape = self.buffer.shape
        if not shape:
            return 1, 1
        return max(1, math.prod(shape[:-1])), max(1, shape[-1])

    @cached_property
    def _grid(self) -> tuple[int, int]:
        """(rows, columns) of cells."""
        rows, columns = self._matrix
        if rows == 1:
            return 1, min(columns, 2 * MOST_COLUMNS)
        return min(rows, MOST_ROWS), min(columns, MOST_COLUMNS)

    @cached_property
    def _cell(self) -> Array:
        """The cell of each element of the buffer, int32."""
        row, column = self._positions()
        (rows, columns), (down, across) = self._matrix, self._grid
        return ((row * down // rows) * across + column * across // columns).astype(np.int32)

    def _positions(self) -> tuple[Array, Array]:
        """(row, column) in `_matrix` of each element of the buffer, from the tensor's strides."""
        rest = np.arange(len(self.loaded))
        index: dict[int, Array] = {}
        axes = sorted(
            (axis for axis, size in enumerate(self.buffer.shape) if size > 1),
            key=lambda axis: -self.buffer.stride[axis],
        )
        for axis in axes:
            stride = self.buffer.stride[axis]
            size = self.buffer.shape[axis]
            index[axis] = np.minimum(rest // stride, size - 1) if stride else np.zeros_like(rest)
            rest = rest - index[axis] * stride
        row = np.zeros_like(rest)
        last = len(self.buffer.shape) - 1
        for axis, size in enumerate(self.buffer.shape[:-1]):
            row = row * size + index.get(axis, 0)
        column = index.get(last, np.zeros_like(rest))
        return row, column

    def picture(self) -> AccessMap:
        """The cells as they are now."""
        lowest = {
            kind: np.where(self._counts[kind] > 0, self._lowest[kind], -1).tolist()
            for kind in self._counts
        }
        rows, columns = self._grid
        elements = np.bincount(self._cell, minlength=rows * columns)
        return AccessMap(
            rows,
            columns,
            tuple(self.buffer.shape),
            elements.tolist(),
            self._counts["reads"].tolist(),
            self._counts["writes"].tolist(),
            lowest["reads"],
            lowest["writes"],
        )
