"""Values at run time: tensors, index formulas and pointers, with a leading axis for programs.

A value of TTIR type `tensor<AxBxf32>` is a torch tensor of shape (p, a, b) with p in {1, P},
a in {1, A} and b in {1, B}, where P is the number of programs that run together. A scalar has shape
(p,). Values may share memory: no handler writes into an operand, except where nobody can tell
(`reuse`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from mini_triton.errors import KernelError
from mini_triton.execute.tiles.affine import Affine, constant, found_in
from mini_triton.execute.tiles.diagonal import Diagonal
from mini_triton.execute.tiles.mask import Mask
from mini_triton.execute.tiles.shared_tiles import Shared

Tensor = torch.Tensor


@dataclass
class Buffer:
    """A tensor argument, seen as the flat run of elements that its pointer may reach.

    `flat` spans from the tensor's first element to its last, in memory order: `1 + Σ
    (size−1)·stride` elements (none if the tensor is empty). `stored_to`: some launch argument that
    shares its memory is written by the kernel, so a loaded tile must not be a view of it.
    """

    name: str
    flat: Tensor
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    stored_to: bool = False
    position: int = 0  # among the launch's arguments
    sent_from: int | None = None  # its address in another process, which made the launch
    _views: dict[torch.dtype, Tensor] = field(default_factory=dict)

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return self.flat.data_ptr()

    @property
    def origin(self) -> int:
        """The address of the first byte that pointers in memory hold."""
        return self.address if self.sent_from is None else self.sent_from

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last."""
        return self.flat.numel() * self.flat.element_size()

    def overlaps(self, other: Buffer) -> bool:
        """True if the two share memory."""
        return (
            self.address < other.address + other.nbytes
            and other.address < self.address + self.nbytes
        )

    def as_dtype(self, dtype: torch.dtype) -> Tensor:
        """The flat run read as elements of `dtype`, as a pointer cast does."""
        if dtype == self.flat.dtype:
            return self.flat
        if dtype not in self._views:
            self._views[dtype] = _reinterpreted(self.flat, dtype)
        return self._views[dtype]


def _reinterpreted(flat: Tensor, dtype: torch.dtype) -> Tensor:
    size = dtype.itemsize
    usable = flat.numel() * flat.element_size() // size * size // flat.element_size()
    if flat.storage_offset() * flat.element_size() % size:
        raise KernelError(f"a pointer cast to {dtype} needs an address divisible by {size}")
    return flat[:usable].view(dtype)


@dataclass(slots=True)
class Pointer:
    """A tile of pointers: a buffer and element offsets, `offset + rest`; nobody changes one.

    offset: the part of the offsets that is a formula. rest: the part that is not, int64 lanes, or
    None. `buffer` is None for a pointer of unknown origin; then they are absolute byte addresses.
    """

    buffer: Buffer | None
    offset: Affine  # int64, exact: addresses do not wrap
    rest: Tensor | None
    dtype: torch.dtype  # of the pointee

    @property
    def lanes(self) -> Tensor:
        """The offsets of all lanes, int64."""
        return self.offset.dense if self.rest is None else self.offset.dense + self.rest

    def advance(self, step: Tensor | Affine) -> Pointer:
        """`self + step` elements."""
        formula = step if isinstance(step, Affine) else found_in(step)
        size = self.dtype.itemsize if self.buffer is None else 1
        if formula is not None:
            offset = self.offset.plus(formula.times(size)).fits()
            if offset is not None:
                return Pointer(self.buffer, offset, self.rest, self.dtype)
        lanes = step.dense if isinstance(step, Affine) else step
        lanes = lanes.to(torch.int64) * size
        if formula is not None:  # beyond 64 bits, where only lanes can be
            return self.of_lanes(self.lanes + lanes)
        rest = lanes if self.rest is None else self.rest + lanes
        return Pointer(self.buffer, self.offset, rest, self.dtype)

    def cast(self, dtype: torch.dtype) -> Pointer:
        """The same addresses, read as elements of `dtype`."""
        old, new = self.dtype.itemsize, dtype.itemsize
        if self.buffer is None or old == new:
            return Pointer(self.buffer, self.offset, self.rest, dtype)
        if old % new:
            wide = self.absolute()
            return Pointer(None, wide.offset, wide.rest, dtype)
        return self._scaled(self.buffer, old // new, 0, dtype)

    def absolute(self) -> Pointer:
        """The same pointers as byte addresses."""
        if self.buffer is None:
            return self
        return self._scaled(None, self.dtype.itemsize, self.buffer.origin, self.dtype)

    def _scaled(
        self, buffer: Buffer | None, factor: int, start: int, dtype: torch.dtype
    ) -> Pointer:
        origin = constant(start, torch.int64, len(self.offset.steps))
        offset = self.offset.times(factor).plus(origin).fits()
        if offset is None:  # beyond 64 bits, where only lanes can be
            return pointer_at(buffer, self.lanes * factor + start, dtype)
        rest = None if self.rest is None else self.rest * factor
        return Pointer(buffer, offset, rest, dtype)

    def splat(self, rank: int) -> Pointer:
        """A scalar pointer in all lanes of a tile."""
        rest = self.rest
        rest = None if rest is None else rest.reshape(-1, *(1,) * rank)
        return Pointer(self.buffer, self.offset.splat(rank), rest, self.dtype)

    def expand_dims(self, axis: int) -> Pointer:
        """A new axis of the tile."""
        rest = None if self.rest is None else self.rest.unsqueeze(axis + 1)
        return Pointer(self.buffer, self.offset.expand_dims(axis), rest, self.dtype)

    def transpose(self, order: tuple[int, ...]) -> Pointer:
        """Axis i of the result is axis order[i]."""
        rest = None if self.rest is None else transposed(self.rest, order)
        return Pointer(self.buffer, self.offset.transpose(order), rest, self.dtype)

    def of_lanes(self, lanes: Tensor) -> Pointer:
        """Pointers into the same buffer at other offsets, int64 (p, *tile)."""
        return pointer_at(self.buffer, lanes, self.dtype)


def pointer_at(buffer: Buffer | None, lanes: Tensor, dtype: torch.dtype) -> Pointer:
    """A pointer from the offsets (or addresses) of its lanes."""
    return Pointer(buffer, constant(0, torch.int64, lanes.ndim - 1), lanes, dtype)


#: What pure handlers take: integers as lanes, never as formulas; no tiles held in common.
Lanes = torch.Tensor | Pointer
Value = Lanes | Affine | Mask | Diagonal | Shared
_Held = (Affine, Mask, Diagonal, Shared)


def dense(value: Value) -> Lanes:
    """A formula, or tiles held in common, as lanes; anything else as it is."""
    return value.dense if isinstance(value, _Held) else value


def transposed(lanes: Tensor, order: tuple[int, ...]) -> Tensor:
    """Lanes with the axes of the tile permuted; the programs' axis stays first."""
    return lanes.permute(0, *(axis + 1 for axis in order))


def narrow(value: Value, index: Tensor) -> Value:
    """The value of the programs `index` (int64 positions) only."""
    if isinstance(value, _Held):
        return value.narrow(index)
    if isinstance(value, Pointer):
        rest = None if value.rest is None else _narrow_lanes(value.rest, index)
        return Pointer(value.buffer, value.offset.narrow(index), rest, value.dtype)
    return _narrow_lanes(value, index)


def _narrow_lanes(value: Tensor, index: Tensor) -> Tensor:
    return value if value.shape[0] == 1 else value.index_select(0, index)


def expand(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`value` with its tile axes (not the program axis) full, as a view."""
    return value.expand(value.shape[0], *shape)


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes of one rank, each axis full or of size 1, have together.

    Not `torch.broadcast_shapes`: it imports sympy, which takes half a second of a first launch.
    """
    return tuple(next((n for n in axis if n != 1), 1) for axis in zip(*shapes, strict=True))


def merge(pieces: list[tuple[Tensor, list[Value]]], programs: int) -> list[Value]:
    """Joins values that disjoint sets of programs computed; `pieces` are (positions, values)."""
    if len(pieces) == 1:
        return pieces[0][1]
    indices = [index for index, _ in pieces]
    columns = zip(*(values for _, values in pieces), strict=True)
    return [_join(list(column), indices, programs) for column in columns]


def _join(values: list[Value], indices: list[Tensor], programs: int) -> Value:
    pointers = [v for v in values if isinstance(v, Pointer)]
    if pointers:
        if any(p.buffer is not pointers[0].buffer for p in pointers):
            pointers = [p.absolute() for p in pointers]
        return pointers[0].of_lanes(_join_lanes([p.lanes for p in pointers], indices, programs))
    lanes = [dense(v) for v in values]
    return _join_lanes([v for v in lanes if isinstance(v, torch.Tensor)], indices, programs)


def _join_lanes(values: list[Tensor], indices: list[Tensor], programs: int) -> Tensor:
    tile = broadcast_shape(*(v.shape[1:] for v in values))
    joined = values[0].new_empty((programs, *tile))
    for value, index in zip(values, indices, strict=True):
        joined[index] = value
    return joined


def count_lanes(shape: tuple[int, ...], programs: int) -> int:
    """Elements of a tile over all programs that run together."""
    return math.prod(shape) * programs
