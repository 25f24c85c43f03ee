"""Results written over an operand that nobody needs any more.

A chain of operations on tiles so works on the same memory, which its core's cache holds, where it
would ask for new memory in each. Whether an operand is still needed is not reasoned about: the
reference counts of the tensor and of its memory tell who else holds it, or a view of it.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from mini_triton.execute.tiles.values import Value
from mini_triton.ir.program import Op

Tensor = torch.Tensor

#: For a smaller operand, looking who holds it (3 µs) costs more than is gained.
_FEWEST_ELEMENTS = 1 << 17


def _holders(operands: list[Any], number: int) -> int:
    return sys.getrefcount(operands[number])


def _storage_holders(tensor: Any) -> int:
    count: int = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)
    return count


#: What both are of a tensor that nothing but a list of operands holds.
_ALONE = _holders([torch.empty(1)], 0)
_STORAGE_ALONE = _storage_holders(torch.empty(1))


def written_over(op: Op, values: dict[int, Value], operands: list[Value]) -> Tensor | None:
    """The result of `op` in the memory of one of its operands, None if none is free for that.

    Args:
        op: an operation with a handler `over`, and a result of its operands' dtype.
        values: what slots hold; takes leave of operands that end with `op`.
        operands: of `op`; nobody else holds the list.
    """
    for number, slot in enumerate(op.operands):
        if slot not in op.dead or not _large(operands[number]):
            continue
        values.pop(slot, None)
        if (
            _holders(operands, number) == _ALONE - 1 + op.operands.count(slot)
            and _fits(operands[number], operands)
            and _storage_holders(operands[number]) == _STORAGE_ALONE
        ):
            result: Tensor = op.over(*operands, out=operands[number])
            return result
    return None


def _large(operand: Value) -> bool:
    return isinstance(operand, torch.Tensor) and operand.numel() >= _FEWEST_ELEMENTS


def _fits(operand: Any, operands: list[Value]) -> bool:
    """True for a tile to whose lanes all others are broadcast."""
    if operand.dtype.itemsize == 1 or not operand.is_contiguous():
        return False  # 8-bit floats are computed in float32
    shape = operand.shape
    for other in operands:
        if not isinstance(other, torch.Tensor):
            return False
        if other.shape != shape and any(
            n not in (1, size) for n, size in zip(other.shape, shape, strict=True)
        ):
            return False
    return True
