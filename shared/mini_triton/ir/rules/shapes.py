"""Operations that make, join and take apart tiles."""

from __future__ import annotations

from mini_triton.ir.program import Op
from mini_triton.ir.rules.checking import (
    Rule,
    all_alike,
    axis_of,
    is_int,
    is_truth,
    need,
    one_result,
    operands,
    result_is,
    same,
    whole,
)
from mini_triton.ir.types import Type


def _range(op: Op) -> None:
    operands(op, 0)
    start, end = whole(op, "start"), whole(op, "end")
    need(0 <= start < end < 2**31, f"there is no range from {start} to {end}")
    result_is(op, Type("i32", (end - start,)))


def _splat(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    need(not kind.shape and bool(result.shape), f"it makes no {result} of {kind}")
    result_is(op, kind.with_shape(result.shape))


def _unsplat(op: Op) -> None:
    (kind,) = operands(op, 1)
    need(bool(kind.shape) and kind.numel == 1, f"it takes a tile of one element, not {kind}")
    result_is(op, kind.with_shape(()))


def _broadcast(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    fits = len(kind.shape) == len(result.shape) and all(
        m in (1, n) for m, n in zip(kind.shape, result.shape, strict=True)
    )
    need(fits and kind.with_shape(result.shape) == result, f"it makes no {result} of {kind}")


def _expand_dims(op: Op) -> None:
    (kind,), axis = operands(op, 1), whole(op, "axis")
    need(0 <= axis <= len(kind.shape) and bool(kind.shape), f"{kind} gets no axis {axis}")
    result_is(op, kind.with_shape((*kind.shape[:axis], 1, *kind.shape[axis:])))


def _reshape(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    tiles = bool(kind.shape) and bool(result.shape)
    need(tiles and kind.numel == result.numel, f"it makes no {result} of {kind}")
    result_is(op, kind.with_shape(result.shape))


def _transpose(op: Op) -> None:
    (kind,), order = operands(op, 1), op.attrs.get("order")
    need(
        isinstance(order, list) and sorted(map(str, order)) == _names(len(kind.shape)),
        f"{order} is no order of the axes of {kind}",
    )
    assert isinstance(order, list)
    need(all(type(axis) is int for axis in order), f"{order} is no order")
    result_is(op, kind.with_shape(tuple(kind.shape[axis] for axis in order)))


def _names(rank: int) -> list[str]:
    return sorted(map(str, range(rank)))


def _concatenate(op: Op) -> None:
    a, b = operands(op, 2)
    need(bool(a.shape) and bool(b.shape), "it takes tiles")
    need(a.with_shape(b.shape) == b and a.shape[1:] == b.shape[1:], f"{a} and {b} do not fit")
    result_is(op, a.with_shape((a.shape[0] + b.shape[0], *a.shape[1:])))


def _join(op: Op) -> None:
    a, b = operands(op, 2)
    all_alike((a, b))
    need(not a.is_pointer, f"it does not take {a}")
    result_is(op, a.with_shape((*a.shape, 2)))


def _split(op: Op) -> None:
    (kind,) = operands(op, 1)
    need(not kind.is_pointer and kind.shape[-1:] == (2,), f"it does not take {kind}")
    need(len(op.types) == 2, f"it has two results, not {len(op.types)}")
    all_alike((kind.with_shape(kind.shape[:-1]), *op.types))


def _gather(op: Op) -> None:
    source, index = operands(op, 2)
    axis = axis_of(op)
    need(is_int(index) and not is_truth(index), f"{index} is no index")
    need(not source.is_pointer, f"it does not take {source}")
    others = [s for a, s in enumerate(source.shape) if a != axis]
    need(
        len(index.shape) == len(source.shape)
        and others == [s for a, s in enumerate(index.shape) if a != axis],
        f"{index} does not fit {source}",
    )
    result_is(op, source.with_shape(index.shape))


SHAPES: dict[str, Rule] = {
    "tt.make_range": _range,
    "tt.splat": _splat,
    "tt.unsplat": _unsplat,
    "tt.broadcast": _broadcast,
    "ttg.convert_layout": same(1, lambda kind: True),
    "tt.expand_dims": _expand_dims,
    "tt.reshape": _reshape,
    "tt.trans": _transpose,
    "tt.cat": _concatenate,
    "tt.join": _join,
    "tt.split": _split,
    "tt.gather": _gather,
}
