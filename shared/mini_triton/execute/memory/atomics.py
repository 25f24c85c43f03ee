"""`tt.atomic_rmw` and `tt.atomic_cas`: one lane after the other, in grid order.

Counting: the update stores one element a lane, and loads one only if the kernel uses the old value,
as hardware has it: an unused result is a reduction (`red`), which sends data one way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from mini_triton.execute.memory.active import active_lanes, expand_all, lanes_on, zero
from mini_triton.execute.memory.addresses import by_buffer
from mini_triton.execute.memory.bounds import check_bounds
from mini_triton.execute.memory.observe import tell
from mini_triton.execute.registry import framed
from mini_triton.execute.tiles.values import Pointer
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
    operand = frame.tensor(op.operands[1])

    def apply(lanes: _Lanes) -> Tensor | None:
        value = lanes.flattened(operand)
        if kind in ("add", "fadd") and not op.used and lanes.flat.dtype.itemsize >= 4:
            target, index, numbers = lanes.flat.numpy(), lanes.index.numpy(), value.numpy()
            frame.machine.stores.add(
                lambda: np.add.at(target, index, numbers), index.nbytes + numbers.nbytes
            )
            return None
        update = _UPDATE[kind]
        return _updated(frame, lanes, lambda now, at: update(now, value[at]))

    return _apply(frame, op, mask, apply)


@framed("tt.atomic_cas")
def _compare_and_swap(frame: Frame, op: Op) -> Tensor | None:
    operands = [frame.tensor(slot) for slot in op.operands[1:3]]

    def apply(lanes: _Lanes) -> Tensor | None:
        expected, value = (lanes.flattened(operand) for operand in operands)
        return _updated(
            frame, lanes, lambda now, at: torch.where(now == expected[at], value[at], now)
        )

    return _apply(frame, op, None, apply)


def _apply(
    frame: Frame, op: Op, mask: Tensor | None, apply: Callable[[_Lanes], Tensor | None]
) -> Tensor | None:
    """Applies an update to every tensor that the pointers reach; the old values if they are used.

    Those of lanes that are masked off are undefined.
    """
    pointer = frame[op.operands[0]]
    assert isinstance(pointer, Pointer)
    mask = lanes_on(active_lanes(frame, mask, op.operand_types[0].shape)[0])
    reached: list[tuple[Pointer, Tensor | None]] = [(pointer, mask)]
    if pointer.buffer is None:
        reached = [(part, inside) for _, part, inside in by_buffer(frame, op, pointer, mask)]
    undefined = frame.machine.undefined if op.used and mask is not None else zero
    old = expand_all(frame, undefined(op), op.types[0].shape)
    for part, inside in reached:
        lanes = _Lanes(frame, op, part, inside)
        found = apply(lanes)
        if op.used and found is not None:
            old = lanes.restored(found, old)
    return old if op.used else None


class _Lanes:
    """The lanes of an atomic operation whose mask is true, flattened in grid order.

    flat: the tensor's elements. index: which of them each lane updates, int64 (n,).
    """

    def __init__(self, frame: Frame, op: Op, pointer: Pointer, mask: Tensor | None) -> None:
        buffer = pointer.buffer
        assert buffer is not None
        shape = op.operand_types[0].shape
        some, active = active_lanes(frame, mask, shape)
        mask = lanes_on(some)
        self.flat = buffer.as_dtype(pointer.dtype)
        offsets = expand_all(frame, pointer.lanes, shape)
        check_bounds(frame, op, buffer, offsets, mask, self.flat.numel(), "updates")
        if frame.machine.observers:
            operand = op.operands[2 if op.name == "tt.atomic_cas" else 1]
            tell(frame, op, "atomic", pointer, mask, shape, frame.tensor(operand))
        frame.machine.count(op, buffer, "stored", active, pointer.dtype.itemsize)
        if op.used:
            frame.machine.count(op, buffer, "loaded", active, pointer.dtype.itemsize)
        self._keep = None if mask is None else expand_all(frame, mask, shape)
        self._frame, self._shape = frame, shape
        self.index = self.flattened(offsets)

    def flattened(self, value: Tensor) -> Tensor:
        """The value's active lanes, (n,)."""
        full = expand_all(self._frame, value, self._shape)
        return full.reshape(-1) if self._keep is None else full[self._keep]

    def restored(self, lanes: Tensor, others: Tensor) -> Tensor:
        """Active lanes (n,) back in the tile's shape; `others` where the mask is false."""
        if self._keep is None:
            return lanes.reshape(others.shape)
        result = others.clone()
        result[self._keep] = lanes
        return result


def _updated(
    frame: Frame, lanes: _Lanes, update: Callable[[Tensor, Tensor], Tensor]
) -> Tensor | None:
    """Updates the lanes; the old values, or None if they are not asked for and it can wait."""
    old: list[Tensor] = []
    frame.machine.stores.add(
        lambda: old.append(_in_rounds(lanes.flat, lanes.index, update)), 2 * lanes.index.nbytes
    )
    return old[0] if old else None


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
