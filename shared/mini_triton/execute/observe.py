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

from mini_triton.execute.values import Buffer, Pointer

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame
    from mini_triton.ir.program import Op

Tensor = torch.Tensor
Kind = Literal["load", "store", "atomic"]


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
