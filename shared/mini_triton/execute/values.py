"""Values at run time: tensors and pointers with a leading axis for programs.

A value of TTIR type `tensor<AxBxf32>` is a torch tensor of shape (p, a, b) with p in {1, P},
a in {1, A} and b in {1, B}, where P is the number of programs that run together. A scalar has shape
(p,). No handler writes into an operand: values may share memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from mini_triton.errors import KernelError


@dataclass
class Buffer:
    """A tensor argument, seen as the flat run of elements that its pointer may reach.

    `flat` spans from the tensor's first element to its last, in memory order: `1 + Σ (size−1)·stride`
    elements (none if the tensor is empty). `stored_to`: some launch argument that shares its memory is
    written by the kernel, so a loaded tile must not be a view of it.
    """

    name: str
    flat: torch.Tensor
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    stored_to: bool = False
    position: int = 0  # among the launch's arguments
    _views: dict[torch.dtype, torch.Tensor] = field(default_factory=dict)

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return self.flat.data_ptr()

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last."""
        return self.flat.numel() * self.flat.element_size()

    def as_dtype(self, dtype: torch.dtype) -> torch.Tensor:
        """The flat run read as elements of `dtype`, as a pointer cast does."""
        if dtype == self.flat.dtype:
            return self.flat
        if dtype not in self._views:
            self._views[dtype] = _reinterpreted(self.flat, dtype)
        return self._views[dtype]


def _reinterpreted(flat: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    size = dtype.itemsize
    usable = flat.numel() * flat.element_size() // size * size // flat.element_size()
    if flat.storage_offset() * flat.element_size() % size:
        raise KernelError(f"a pointer cast to {dtype} needs an address divisible by {size}")
    return flat[:usable].view(dtype)


@dataclass(frozen=True)
class Pointer:
    """A tile of pointers: a buffer and element offsets, kept as a *sum of terms*.

    The terms' axes of size > 1 are disjoint, so a row offset (P, 1) and a column offset (1, N) are
    never added up into a (P, N) tile unless the access needs it. `buffer` is None for a pointer of
    unknown origin; then the terms add up to absolute byte addresses.
    """

    buffer: Buffer | None
    terms: tuple[torch.Tensor, ...]  # int64
    dtype: torch.dtype  # of the pointee

    @property
    def ndim(self) -> int:
        """1 + rank of the tile."""
        return self.terms[0].ndim

    def dense(self) -> torch.Tensor:
        """The terms added up, int64."""
        total = self.terms[0]
        for term in self.terms[1:]:
            total = total + term
        return total

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Pointer:
        """The pointer with `change` applied to every term."""
        return Pointer(self.buffer, tuple(change(t) for t in self.terms), self.dtype)

    def advance(self, offset: torch.Tensor) -> Pointer:
        """`self + offset` elements."""
        step = offset.to(torch.int64)
        if self.buffer is None:
            step = step * self.dtype.itemsize
        axes = _axes(step)
        apart = []
        for term in self.terms:
            if _axes(term) & axes or not _axes(term):
                step = step + term
                axes = _axes(step)
            else:
                apart.append(term)
        # Joining one term can make axes overlap with a term that was kept apart before.
        merged = Pointer(self.buffer, (step,), self.dtype)
        for term in apart:
            if _axes(term) & _axes(merged.terms[0]):
                merged = Pointer(self.buffer, (merged.terms[0] + term,), self.dtype)
        rest = tuple(t for t in apart if not _axes(t) & _axes(merged.terms[0]))
        return Pointer(self.buffer, (*merged.terms, *rest), self.dtype)

    def cast(self, dtype: torch.dtype) -> Pointer:
        """The same addresses, read as elements of `dtype`."""
        old, new = self.dtype.itemsize, dtype.itemsize
        if self.buffer is None or old == new:
            return Pointer(self.buffer, self.terms, dtype)
        if old % new == 0:
            return Pointer(self.buffer, tuple(t * (old // new) for t in self.terms), dtype)
        return Pointer(None, self.absolute().terms, dtype)

    def absolute(self) -> Pointer:
        """The same pointers as byte addresses."""
        if self.buffer is None:
            return self
        address = self.dense() * self.dtype.itemsize + self.buffer.address
        return Pointer(None, (address,), self.dtype)


def _axes(value: torch.Tensor) -> set[int]:
    """Axes along which a value is stored in full."""
    return {axis for axis, size in enumerate(value.shape) if size > 1}


Value = torch.Tensor | Pointer


def narrow(value: Value, index: torch.Tensor) -> Value:
    """The value of the programs `index` (int64 positions) only."""
    if isinstance(value, Pointer):
        return value.map(lambda term: narrow(term, index))
    return value if value.shape[0] == 1 else value.index_select(0, index)


def expand(value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """`value` with its tile axes (not the program axis) full, as a view."""
    return value.expand(value.shape[0], *shape)


def merge(pieces: list[tuple[torch.Tensor, list[Value]]], programs: int) -> list[Value]:
    """Joins values that disjoint sets of programs computed; `pieces` are (positions, values)."""
    if len(pieces) == 1:
        return pieces[0][1]
    indices = [index for index, _ in pieces]
    columns = zip(*(values for _, values in pieces), strict=True)
    return [_join(list(column), indices, programs) for column in columns]


def _join(values: list[Value], indices: list[torch.Tensor], programs: int) -> Value:
    if isinstance(values[0], Pointer):
        pointers = [v for v in values if isinstance(v, Pointer)]
        if any(p.buffer is not pointers[0].buffer for p in pointers):
            pointers = [p.absolute() for p in pointers]
        offsets = _join([p.dense() for p in pointers], indices, programs)
        assert isinstance(offsets, torch.Tensor)
        return Pointer(pointers[0].buffer, (offsets,), pointers[0].dtype)
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    tile = torch.broadcast_shapes(*(t.shape[1:] for t in tensors))
    joined = tensors[0].new_empty((programs, *tile))
    for tensor, index in zip(tensors, indices, strict=True):
        joined[index] = tensor
    return joined


def lanes(shape: tuple[int, ...], programs: int) -> int:
    """Elements of a tile over all programs that run together."""
    return math.prod(shape) * programs
