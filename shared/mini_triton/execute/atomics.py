"""`tt.atomic_rmw` and `tt.atomic_cas`: one lane after the other, in grid order.

Counting: the update stores one element a lane, and loads one only if the kernel uses the old value,
as hardware has it: an unused result is a reduction (`red`), which sends data one way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from mini_triton.execute.memory import _active, check_bounds, expand_all
from mini_triton.execute.registry import framed
from mini_triton.execute.values import Pointer
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


def _biased(x: Tensor) -> Tensor:
    return x ^ torch.iinfo(x.dtype).min


_UPDATE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "fadd": torch.add,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "max": torch.maximum,
    "min": torch.minimum,
    "umax": lambda a, b: torch.where(_biased(a) >= _biased(b), a, b),
    "umin": lambda a, b: torch.where(_biased(a) <= _biased(b), a, b),
    "exch": lambda a, b: b,
}


@framed("tt.atomic_rmw")
def _read_modify_write(frame: Frame, op: Op) -> Tensor | None:
    kind = op.keywords[0]
    mask = frame.tensor(op.operands[2]) if len(op.operands) > 2 else None
    operands = _Lanes(frame, op, mask)
    (value,) = operands.flattened(frame.tensor(op.operands[1]))
    if kind in ("add", "fadd") and not op.used and operands.flat.dtype.itemsize >= 4:
        np.add.at(operands.flat.numpy(), operands.index.numpy(), value.numpy())
        return None
    update = _UPDATE[kind]
    old = _in_rounds(operands.flat, operands.index, lambda now, lane: update(now, value[lane]))
    return operands.restored(old) if op.used else None


@framed("tt.atomic_cas")
def _compare_and_swap(frame: Frame, op: Op) -> Tensor | None:
    operands = _Lanes(frame, op, None)
    expected, value = operands.flattened(frame.tensor(op.operands[1]), frame.tensor(op.operands[2]))
    old = _in_rounds(
        operands.flat,
        operands.index,
        lambda now, lane: torch.where(now == expected[lane], value[lane], now),
    )
    return operands.restored(old) if op.used else None


class _Lanes:
    """The lanes of an atomic operation whose mask is true, flattened in grid order."""

    def __init__(self, frame: Frame, op: Op, mask: Tensor | None) -> None:
        pointer = frame[op.operands[0]]
        assert isinstance(pointer, Pointer)
        shape = op.operand_types[0].shape
        mask, active = _active(frame, mask, shape)
        if pointer.buffer is None:
            raise NotImplementedError("an atomic operation on a computed address")
        self.flat = pointer.buffer.as_dtype(pointer.dtype)
        offsets = expand_all(frame, pointer.lanes, shape)
        check_bounds(frame, op, pointer.buffer, offsets, mask, self.flat.numel(), "updates")
        frame.machine.count(op, pointer.buffer, "stored", active, pointer.dtype.itemsize)
        if op.used:
            frame.machine.count(op, pointer.buffer, "loaded", active, pointer.dtype.itemsize)
        self._keep = None if mask is None else expand_all(frame, mask, shape)
        self._frame, self._shape = frame, shape
        (self.index,) = self.flattened(offsets)

    def flattened(self, *values: Tensor) -> list[Tensor]:
        """Each value's active lanes, (n,)."""
        full = [expand_all(self._frame, v, self._shape) for v in values]
        return [v.reshape(-1) if self._keep is None else v[self._keep] for v in full]

    def restored(self, old: Tensor) -> Tensor:
        """Old values back in the tile's shape; lanes that are masked off get 0."""
        shape = (self._frame.count, *self._shape)
        if self._keep is None:
            return old.reshape(shape)
        result = torch.zeros(shape, dtype=old.dtype)
        result[self._keep] = old
        return result


def _in_rounds(flat: Tensor, index: Tensor, update: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Applies `update(value now, lane numbers)` so that lanes on one element follow each other.

    Round k takes the k-th lane of every element: lanes of one round are on distinct elements.
    Returns the value that each lane found.
    """
    old = torch.empty(index.shape, dtype=flat.dtype)
    order = np.argsort(index.numpy(), kind="stable")
    sorted_index = index.numpy()[order]
    first = np.r_[True, sorted_index[1:] != sorted_index[:-1]] if len(order) else np.array([], bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = np.arange(len(order)) - starts
    for k in range(int(turn.max(initial=-1)) + 1):
        lane = torch.from_numpy(np.nonzero(turn == k)[0])
        now = flat[index[lane]]
        old[lane] = now
        flat[index[lane]] = update(now, lane).to(flat.dtype)
    return old
