"""What of a tensor a launch has touched: distinct elements, and a small picture of who did.

The picture has cells: the tensor's elements as a matrix (a vector as one row; leading axes of a
larger tensor as more rows), downsampled to at most `MOST_ROWS` × `MOST_COLUMNS`. A cell has how
many elements were read and written there, over all programs, and the lowest program that did; of
the whole tensor the highest one is kept, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mini_triton.execute.tiles.values import Buffer

Array = np.ndarray

MOST_ROWS, MOST_COLUMNS = 32, 64
_NOBODY = np.iinfo(np.int64).max


@dataclass
class AccessMap:
    """A picture of one tensor, cells row by row.

    Attributes:
        rows, columns: of cells.
        shape: of the tensor.
        elements: that a cell stands for.
        reads, writes: of elements, over all programs.
        reader, writer: lowest program that did; −1: none.
        last_reader, last_writer: highest program that touched any of the tensor; −1: none.
    """

    rows: int
    columns: int
    shape: tuple[int, ...]
    elements: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    reader: list[int] = field(default_factory=list)
    writer: list[int] = field(default_factory=list)
    last_reader: int = -1
    last_writer: int = -1

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
        self._cells = self._grid[0] * self._grid[1]
        self._counts = {kind: np.zeros(self._cells, np.int64) for kind in ("reads", "writes")}
        self._lowest = {kind: np.full(self._cells, _NOBODY) for kind in ("reads", "writes")}
        self._highest = {"reads": -1, "writes": -1}

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
        self._reached(programs, reads, writes)
        # Programs that touch the same tile are looked at once; the lowest of them stands for all.
        starts, first, times = np.unique(base, return_index=True, return_counts=True)
        order = np.argsort(-programs[first])
        self._add(
            np.repeat(programs[first][order], len(lanes)),
            (starts[order, None] + lanes).reshape(-1),
            np.repeat(times[order], len(lanes)) if (times > 1).any() else None,
            item,
            reads,
            writes,
        )

    def elements(self, programs: Array, where: Array, item: int, reads: bool, writes: bool) -> None:
        """Single elements of `item` bytes, each with its program; programs ascend."""
        self._reached(programs, reads, writes)
        self._add(programs[::-1], where[::-1], None, item, reads, writes)

    def _reached(self, programs: Array, reads: bool, writes: bool) -> None:
        """Keeps the highest program."""
        highest = int(programs.max(initial=-1))
        for kind, touches in (("reads", reads), ("writes", writes)):
            if touches:
                self._highest[kind] = max(self._highest[kind], highest)

    def _add(
        self,
        programs: Array,
        where: Array,
        times: Array | None,
        item: int,
        reads: bool,
        writes: bool,
    ) -> None:
        """Elements with their programs, which descend, and how often; None: once."""
        if item > self._item:  # a pointer cast: it touches several of the tensor's elements
            ratio = item // self._item
            where = (where[:, None] * ratio + np.arange(ratio)).reshape(-1)
            programs = np.repeat(programs, ratio)
            times = None if times is None else np.repeat(times, ratio)
        elif item < self._item:
            where = where // (self._item // item)
        cells = self._cell[where]
        lowest = np.full(self._cells + 1, _NOBODY)
        lowest[cells] = programs  # of equal cells, the last assignment stays
        totals = np.bincount(cells, weights=times, minlength=self._cells + 1).astype(np.int64)
        for kind, touches, marks in (
            ("reads", reads, self.loaded),
            ("writes", writes, self.stored),
        ):
            if touches:
                marks[where] = True
                self._counts[kind] += totals[: self._cells]
                np.minimum(self._lowest[kind], lowest[: self._cells], out=self._lowest[kind])

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
    def _axes(self) -> tuple[Array, Array]:
        """The cell along each axis of the picture, of each row and column of elements, int32."""
        row, column = (
            (np.arange(size) * cells // size).astype(np.int32)
            for size, cells in zip(self._matrix, self._grid, strict=True)
        )
        return row, column

    @cached_property
    def _cell(self) -> Array:
        """The cell of each element of the buffer, int32; `_cells` for what lies in between."""
        row, column = self._axes
        row = row * np.int32(self._grid[1])
        cell = np.full(self.buffer.flat.numel(), self._cells, dtype=np.int32)
        if cell.size:
            shape = self.buffer.shape or (1,)
            strides = [stride * cell.itemsize for stride in self.buffer.stride or (1,)]
            tensor = np.lib.stride_tricks.as_strided(cell, shape, strides)
            leading = shape[:-1]
            tensor[...] = row.reshape(*leading, 1) + column if leading else column
        return cell

    def picture(self) -> AccessMap:
        """The cells as they are now."""
        lowest = {
            kind: np.where(self._counts[kind] > 0, self._lowest[kind], -1).tolist()
            for kind in self._counts
        }
        rows, columns = self._grid
        if any(stride == 0 for stride in self.buffer.stride) or not self.buffer.flat.numel():
            elements = np.bincount(self._cell, minlength=self._cells + 1)[: self._cells]
        else:
            elements = np.outer(*map(np.bincount, self._axes)).reshape(-1)
        return AccessMap(
            rows,
            columns,
            tuple(self.buffer.shape),
            elements.tolist(),
            self._counts["reads"].tolist(),
            self._counts["writes"].tolist(),
            lowest["reads"],
            lowest["writes"],
            self._highest["reads"],
            self._highest["writes"],
        )
