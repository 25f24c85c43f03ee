"""Products, reductions, scans and what else runs on lanes."""

from __future__ import annotations

from mini_triton.ir.program import Op
from mini_triton.ir.rules.checking import (
    Rule,
    axis_of,
    is_float,
    is_int,
    is_truth,
    mask,
    need,
    one_result,
    operands,
    result_is,
    shapes_of,
)
from mini_triton.ir.types import Type


def _dot(op: Op) -> None:
    a, b, c = operands(op, 3)
    result_is(op, c)
    fits = (
        len(a.shape) == len(b.shape) == len(c.shape) in (2, 3)
        and a.shape[:-2] == b.shape[:-2] == c.shape[:-2]
        and (a.shape[-2], b.shape[-1]) == c.shape[-2:]
        and a.shape[-1] == b.shape[-2]
    )
    need(fits, f"there is no product of {a} and {b} that is {c}")
    alike = a.element == b.element or (is_float(a) and is_float(b) and a.itemsize == b.itemsize)
    numbers = not (a.is_pointer or b.is_pointer or c.is_pointer or is_truth(a) or is_truth(c))
    need(alike and numbers and is_float(a) == is_float(c), f"{a} and {b} give no {c}")


def _dot_scaled(op: Op) -> None:
    """Two factors, each followed by its scale if it has one, and a sum."""
    scaled = op.attrs.get("scaled", (False, False))
    kinds = list(operands(op, 3 + sum(scaled)))
    a = kinds.pop(0)
    a_scale = kinds.pop(0) if scaled[0] else None
    b = kinds.pop(0)
    b_scale = kinds.pop(0) if scaled[1] else None
    (c,) = kinds
    result_is(op, c)
    rank = len(c.shape)
    need(rank in (2, 3) and c.element == "f32", f"{c} is no tile of sums")
    for kind in (a, b, a_scale, b_scale):
        if kind is not None:
            batch = not kind.is_pointer and kind.shape[:-2] == c.shape[:-2]
            need(len(kind.shape) == rank and batch, f"it does not take {kind}")
    (a_rows, a_depth), (b_depth, b_columns) = _unpacked(op, a, 0), _unpacked(op, b, 1)
    fits = a_depth == b_depth and (a_rows, b_columns) == c.shape[-2:]
    need(fits, f"there is no product of {a} and {b} that is {c}")
    for scale, rows in ((a_scale, a_rows), (b_scale, b_columns)):
        if scale is not None:
            groups = scale.shape[-1]
            need(
                scale.shape[-2] == rows and groups > 0 and a_depth % groups == 0,
                f"{scale} does not scale {a_depth} factors of {rows}",
            )


def _unpacked(op: Op, kind: Type, side: int) -> tuple[int, int]:
    """Rows and columns of a factor; one of e2m1 holds two numbers a byte."""
    name = "lr"[side] + "hs"
    rows, columns = kind.shape[-2:]
    if op.attrs.get(name) != "e2m1":
        wide = {"bf16": "bf16", "fp16": "f16"}.get(str(op.attrs.get(name)))
        fits = kind.element == wide if wide else kind.itemsize == 1
        need(fits, f"{kind} is no {op.attrs.get(name)}")
        return rows, columns
    need(kind.element == "i8", f"{kind} does not hold e2m1")
    along_depth = op.attrs.get(f"{name}_k_pack", True)
    return (rows, 2 * columns) if along_depth == (side == 0) else (2 * rows, columns)


def _lanewise(op: Op) -> None:
    """Operands and results of one shape."""
    kinds = (*op.operand_types, *op.types)
    need(bool(op.types) and len(shapes_of(kinds)) == 1, "its shapes differ")
    need(not any(kind.is_pointer for kind in kinds), "it does not take pointers")


def along_axis(op: Op) -> int:
    """Operands of a reduction or scan: tiles of one shape, with the axis."""
    kinds = op.operand_types
    need(bool(kinds) and len(shapes_of(kinds)) == 1, "its operands have several shapes")
    need(not any(kind.is_pointer for kind in kinds), "it does not take pointers")
    return axis_of(op)


def _reduce(op: Op) -> None:
    axis = along_axis(op)
    rest = tuple(n for a, n in enumerate(op.operand_types[0].shape) if a != axis)
    found = tuple(kind.with_shape(rest) for kind in op.operand_types)
    need(op.types == found, "its results are not its operands without that axis")
    combines(op)


def _scan(op: Op) -> None:
    along_axis(op)
    need(op.types == op.operand_types, "its results are not like its operands")
    combines(op)


def combines(op: Op) -> None:
    """One region, of two numbers for each operand."""
    need(len(op.regions) == 1, "it has one region")
    wanted = [kind.with_shape(()) for kind in op.operand_types]
    arguments = op.regions[0].entry.args
    need(len(arguments) == 2 * len(wanted), "its region takes two numbers for each operand")


def _histogram(op: Op) -> None:
    kinds = operands(op, 1, 2)
    need(is_int(kinds[0]) and len(kinds[0].shape) == 1, f"it does not take {kinds[0]}")
    if len(kinds) > 1:
        mask(kinds[1], kinds[0].shape)
    result = one_result(op)
    need(is_int(result) and len(result.shape) == 1 and not is_truth(result), f"{result}")


COMBINING: dict[str, Rule] = {
    "tt.dot": _dot,
    "tt.dot_scaled": _dot_scaled,
    "tt.extern_elementwise": _lanewise,
    "tt.elementwise_inline_asm": _lanewise,
    "tt.map_elementwise": _lanewise,
    "tt.reduce": _reduce,
    "tt.scan": _scan,
    "tt.histogram": _histogram,
}
