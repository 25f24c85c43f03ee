"""What watches a launch: every access to memory, told to observers before memory is touched.

The executor knows nothing of what observers look for. The sanitizer looks for races and for memory
that was never written, the hardware model for sectors and cache lines; each is an `Observer` of its
own. A launch that nobody watches pays nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import torch

from mini_triton.execute.memory.bounds import check_bounds
from mini_triton.execute.tiles.values import Buffer, Pointer

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame
    from mini_triton.ir.program import Op

Tensor = torch.Tensor
Kind = Literal["load", "store", "atomic"]

_VERBS: dict[Kind, str] = {"load": "loads", "store": "stores", "atomic": "updates"}


@dataclass(frozen=True)
class Access:
    """One load, store or atomic update of one tensor, by all programs that run together (P).

    The lanes whose mask is true are inside the tensor: bounds were checked. `used` says of an
    atomic update whether the kernel takes the old value. `values`: what a store writes, or
    the operand of an atomic update, broadcastable to (P, *shape).
    """

    kind: Kind
    op: Op
    buffer: Buffer
    frame: Frame
    pointer: Pointer
    lanes_on: Tensor | None  # None where the mask is true everywhere
    shape: tuple[int, ...]  # of the tile
    values: Tensor | None = None

    @property
    def programs(self) -> Tensor:
        """Linear ids of the programs, int64 (P,)."""
        return self.frame.programs

    @property
    def element_size(self) -> int:
        """Bytes of an element, as the pointer's type has it."""
        return self.pointer.dtype.itemsize

    @cached_property
    def offsets(self) -> Tensor:
        """Elements from the tensor's first one, int64 (P, *shape)."""
        return self.pointer.lanes.expand(self.frame.count, *self.shape)

    @cached_property
    def mask(self) -> Tensor | None:
        """Which lanes take part, bool (P, *shape); None: all of them."""
        return (
            None if self.lanes_on is None else self.lanes_on.expand(self.frame.count, *self.shape)
        )


class Observer(Protocol):
    """Is told what a launch does, in the order in which it is done."""

    def access(self, access: Access) -> None:
        """Called for each access, before memory is read or written."""
        ...


@runtime_checkable
class OperationObserver(Protocol):
    """An observer that is told every operation besides; those inside a reduction's body apart."""

    def operation(self, frame: Frame, op: Op) -> None:
        """Called before the programs of `frame` run `op`."""
        ...


def tell(
    frame: Frame,
    op: Op,
    kind: Kind,
    pointer: Pointer,
    mask: Tensor | None,
    shape: tuple[int, ...],
    values: Tensor | None = None,
) -> None:
    """Checks an access's bounds, then tells it to the launch's observers."""
    buffer = pointer.buffer
    assert buffer is not None
    access = Access(kind, op, buffer, frame, pointer, mask, shape, values)
    numel = buffer.as_dtype(pointer.dtype).numel()
    check_bounds(frame, op, buffer, access.offsets, access.mask, numel, _VERBS[kind])
    for observer in frame.machine.observers:
        observer.access(access)
