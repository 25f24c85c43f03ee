"""Pointers, loads, stores and atomic updates."""

from __future__ import annotations

from collections.abc import Callable

from mini_triton.ir.program import Op
from mini_triton.ir.rules.checking import (
    Rule,
    all_alike,
    is_float,
    is_int,
    is_truth,
    mask,
    need,
    no_results,
    one_result,
    operands,
    result_is,
)
from mini_triton.ir.types import Type


def pointee(kind: Type) -> Type:
    """What a pointer, or tile of pointers, points to, in its shape."""
    need(kind.is_pointer and kind.pointee is not None, f"{kind} is no pointer")
    assert kind.pointee is not None
    return kind.pointee.with_shape(kind.shape)


def _load(op: Op) -> None:
    kinds = operands(op, 1, 3)
    value = pointee(kinds[0])
    if len(kinds) > 1:
        mask(kinds[1], value.shape)
    if len(kinds) > 2:
        need(kinds[2] == value, f"its other is {kinds[2]}, not {value}")
    result_is(op, value)


def _store(op: Op) -> None:
    kinds = operands(op, 2, 3)
    value = pointee(kinds[0])
    need(kinds[1] == value, f"it stores {kinds[1]} through {kinds[0]}")
    if len(kinds) > 2:
        mask(kinds[2], value.shape)
    no_results(op)


def _atomic_load(op: Op) -> None:
    value = pointee(operands(op, 2)[0])
    need(op.keywords[:1] in (("acquire",), ("relaxed",)), "it acquires, or is relaxed")
    need(not value.is_pointer, f"it does not take {value}")
    _load(op)


def _atomic_store(op: Op) -> None:
    value = pointee(operands(op, 3)[0])
    need(op.keywords[:1] in (("release",), ("relaxed",)), "it releases, or is relaxed")
    need(not value.is_pointer, f"it does not take {value}")
    _store(op)


_ATOMICS: dict[str, Callable[[Type], bool]] = {
    "fadd": is_float,
    **dict.fromkeys(("add", "and", "or", "xor", "max", "min", "umax", "umin"), is_int),
    "exch": lambda kind: not kind.is_pointer,
}


def _read_modify_write(op: Op) -> None:
    kinds = operands(op, 2, 3)
    kind = op.keywords[0] if op.keywords else ""
    need(kind in _ATOMICS, f"there is no atomic {kind!r}")
    value = pointee(kinds[0])
    need(_ATOMICS[kind](value) and kinds[1] == value, f"it takes no {kinds[1]}")
    need(not is_truth(value), "it does not take truth values")
    if len(kinds) > 2:
        mask(kinds[2], value.shape)
    result_is(op, value)


def _compare_and_swap(op: Op) -> None:
    kinds = operands(op, 3)
    value = pointee(kinds[0])
    all_alike((value, *kinds[1:]))
    need(not value.is_pointer, f"it does not take {value}")
    result_is(op, value)


def _advance(op: Op) -> None:
    pointer, step = operands(op, 2)
    need(pointer.is_pointer, f"{pointer} is no pointer")
    need(is_int(step) and step.shape == pointer.shape, f"{pointer} takes no steps of {step}")
    result_is(op, pointer)


def _pointer_to_int(op: Op) -> None:
    (kind,) = operands(op, 1)
    need(kind.is_pointer, f"{kind} is no pointer")
    result_is(op, Type("i64", kind.shape))


def _int_to_pointer(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    need(kind == Type("i64", result.shape) and result.is_pointer, f"{kind} is no {result}")


MEMORY: dict[str, Rule] = {
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _read_modify_write,
    "tt.atomic_cas": _compare_and_swap,
    "tt.atomic_load": _atomic_load,
    "tt.atomic_store": _atomic_store,
    "tt.addptr": _advance,
    "tt.ptr_to_int": _pointer_to_int,
    "tt.int_to_ptr": _int_to_pointer,
}
