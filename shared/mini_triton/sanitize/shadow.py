"""What is known of each element of a launch's memory: tables beside its tensors.

Arguments may share memory, under several dtypes. So tables belong to *regions*: runs of bytes in
which arguments overlap, cut into units of as many bytes as the smallest element that was accessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import torch

from mini_triton.execute.memory.observe import Access
from mini_triton.execute.tiles.values import Buffer
from mini_triton.ir.types import INTEGER_OF_SIZE

Array = np.ndarray


class Region:
    """A run of bytes, and tables with an entry for each of its units.

    Attributes:
        start: address of the first byte.
        nbytes: how many there are.
        unit: bytes of a unit.
    """

    def __init__(self, start: int, nbytes: int, unit: int) -> None:
        self.start, self.nbytes, self.unit = start, nbytes, unit
        self._tables: dict[str, Array] = {}

    def table(self, name: str, empty: int = -1, dtype: type = np.int64) -> Array:
        """The table of a name, filled with `empty` when it is first asked for."""
        if name not in self._tables:
            self._tables[name] = np.full(-(-self.nbytes // self.unit), empty, dtype)
        return self._tables[name]

    def has(self, name: str) -> bool:
        """Whether the table was ever asked for."""
        return name in self._tables

    def put(self, name: str, table: Array) -> None:
        """Sets a table."""
        self._tables[name] = table

    def refine(self, unit: int) -> None:
        """Makes units small enough to be cut at multiples of `unit` bytes."""
        unit = gcd(self.unit, unit)
        if unit < self.unit:
            for name, table in self._tables.items():
                self._tables[name] = np.repeat(table, self.unit // unit)
            self.unit = unit


class Shadow:
    """The regions of one launch."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._of: dict[int, Region] = {}
        self.buffers = buffers
        for group in _overlapping(buffers):
            start = min(buffer.address for buffer in group)
            end = max(buffer.address + buffer.nbytes for buffer in group)
            region = Region(start, end - start, group[0].flat.element_size())
            for buffer in group:
                region.refine(buffer.flat.element_size())
                region.refine(buffer.address - start)
                self._of[buffer.position] = region

    def region(self, buffer: Buffer) -> Region:
        """Where a buffer's memory is."""
        return self._of[buffer.position]

    def mark(self, buffer: Buffer, marks: torch.Tensor, table: str) -> Region:
        """Sets a table of truth values where elements of a buffer are marked, bool (n,)."""
        region = self.region(buffer)
        size = buffer.flat.element_size() // region.unit
        first = (buffer.address - region.start) // region.unit
        entries = region.table(table, 0, bool)
        entries[first : first + len(marks) * size] |= np.repeat(marks.numpy(), size)
        return region


def _overlapping(buffers: Sequence[Buffer]) -> list[list[Buffer]]:
    """Buffers in groups that share memory."""
    groups: list[list[Buffer]] = []
    end = -1
    for buffer in sorted(buffers, key=lambda b: b.address):
        if groups and buffer.address < end:
            groups[-1].append(buffer)
        else:
            groups.append([buffer])
        end = max(end, buffer.address + buffer.nbytes)
    return groups


@dataclass(frozen=True)
class Touched:
    """The units that an access touches, lane by lane, without the lanes that are off.

    Attributes:
        region: whose units.
        at: which, int64 (n,); n = lanes · `units`.
        programs: which program's, int64 (n,).
        units: how many a lane's element consists of.
    """

    region: Region
    at: Array
    programs: Array
    units: int


def touched(access: Access, shadow: Shadow) -> Touched:
    """See `Touched`."""
    region = shadow.region(access.buffer)
    size = access.element_size
    region.refine(size)
    units = size // region.unit
    offsets, mask = access.offsets, access.mask
    programs = access.programs.reshape(-1, *(1,) * len(access.shape)).expand(offsets.shape)
    lanes = offsets.reshape(-1) if mask is None else offsets[mask]
    owners = programs.reshape(-1) if mask is None else programs[mask]
    at, owner = lanes.numpy(), owners.numpy()
    first = (access.buffer.address - region.start) // region.unit
    if units > 1:
        at = (at[:, None] * units + np.arange(units)).reshape(-1)
        owner = np.repeat(owner, units)
    return Touched(region, at + first if first else at, owner, units)


def bits(values: torch.Tensor) -> torch.Tensor:
    """Values as integers of their size, to compare NaN with NaN."""
    return values.contiguous().view(INTEGER_OF_SIZE[values.element_size()])


def index_of(buffer: Buffer, offset: int) -> tuple[int, ...]:
    """The index of the element that lies `offset` elements behind the first one.

    One number an axis; just `(offset,)` where no element of the tensor lies there.
    """
    axes = sorted(range(len(buffer.shape)), key=lambda axis: -buffer.stride[axis])
    index, left = [0] * len(buffer.shape), offset
    for axis in axes:
        if buffer.stride[axis] > 0 and buffer.shape[axis] > 1:
            index[axis] = min(left // buffer.stride[axis], buffer.shape[axis] - 1)
            left -= index[axis] * buffer.stride[axis]
    return tuple(index) if left == 0 else (offset,)


def element(region: Region, unit: int, buffer: Buffer) -> tuple[int, ...]:
    """The index, in a buffer, of the element that a unit is part of."""
    byte = region.start + int(unit) * region.unit - buffer.address
    return index_of(buffer, byte // buffer.flat.element_size())
