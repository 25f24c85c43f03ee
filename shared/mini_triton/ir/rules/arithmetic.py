"""Arithmetic, comparisons, conversions and constants."""

from __future__ import annotations

from collections.abc import Callable

from mini_triton.ir.program import Op
from mini_triton.ir.rules.checking import (
    Rule,
    all_alike,
    is_float,
    is_int,
    is_truth,
    need,
    one_result,
    operands,
    result_is,
    same,
)
from mini_triton.ir.types import Type

_INTEGER_ORDER = {f"{sign}{order}" for sign in "su" for order in ("lt", "le", "gt", "ge")}
_FLOAT_ORDER = {
    f"{nan}{order}" for nan in "ou" for order in ("eq", "ne", "lt", "le", "gt", "ge")
} | {"ord", "uno", "true", "false"}


def _comparison(of: Callable[[Type], bool], predicates: set[str]) -> Rule:
    def rule(op: Op) -> None:
        kinds = operands(op, 2)
        need(of(kinds[0]), f"it does not take {kinds[0]}")
        all_alike(kinds)
        predicate = op.keywords[0] if op.keywords else ""
        need(predicate in predicates, f"there is no predicate {predicate!r}")
        result_is(op, Type("i1", kinds[0].shape))

    return rule


def _conversion(source: Callable[[Type], bool], target: Callable[[Type], bool], way: int) -> Rule:
    """Lane by lane from one kind to another, `way` (1: wider, −1: narrower, 0: any width)."""

    def rule(op: Op) -> None:
        (kind,), result = operands(op, 1), one_result(op)
        need(source(kind) and target(result), f"it makes no {result} of {kind}")
        need(kind.shape == result.shape, f"it makes no {result} of {kind}")
        if way:
            gained = result.itemsize - kind.itemsize or is_truth(kind) - is_truth(result)
            need(gained * way > 0, f"it makes no {result} of {kind}")

    return rule


def _bitcast(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    both = kind.is_pointer == result.is_pointer and kind.shape == result.shape
    alike = kind.is_pointer or (
        kind.itemsize == result.itemsize and is_truth(kind) == is_truth(result)
    )
    need(both and alike, f"it makes no {result} of {kind}")


def _select(op: Op) -> None:
    condition, a, b = operands(op, 3)
    need(is_truth(condition) and condition.shape in ((), a.shape), f"it chooses by {condition}")
    all_alike((a, b, one_result(op)))


def _constant(op: Op) -> None:
    operands(op, 0)
    kind = one_result(op)
    need(not kind.is_pointer, "pointers are no constants")
    value = op.attrs.get("value")
    if isinstance(value, list):
        need(_is_listed(value, kind.shape), f"its numbers do not fill a {kind}")
    else:
        need(isinstance(value, bool | int | float), "it has no number")


def _is_listed(value: object, shape: tuple[int, ...]) -> bool:
    """Whether nested lists have a shape."""
    if not shape:
        return isinstance(value, bool | int | float)
    return (
        isinstance(value, list)
        and len(value) == shape[0]
        and all(_is_listed(item, shape[1:]) for item in value)
    )


_TWO_INTS = """addi subi muli andi ori xori divsi floordivsi ceildivsi remsi divui remui shli shrsi
    shrui maxsi minsi maxui minui"""
_TWO_FLOATS = "addf subf mulf divf remf maximumf minimumf maxnumf minnumf"
_ONE_FLOAT = """absf ceil floor trunc round roundeven sqrt rsqrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan asin acos atan sinh cosh tanh erf"""

ARITHMETIC: dict[str, Rule] = {
    **{f"arith.{name}": same(2, is_int) for name in _TWO_INTS.split()},
    **{f"arith.{name}": same(2, is_float) for name in _TWO_FLOATS.split()},
    **{f"math.{name}": same(1, is_float) for name in _ONE_FLOAT.split()},
    **{f"math.{name}": same(2, is_float) for name in ("atan2", "powf", "copysign")},
    "arith.negf": same(1, is_float),
    "math.absi": same(1, is_int),
    "math.fma": same(3, is_float),
    "tt.clampf": same(3, is_float),
    "tt.precise_divf": same(2, is_float),
    "tt.precise_sqrt": same(1, is_float),
    "tt.mulhiui": same(2, is_int),
    "arith.mului_extended": same(2, is_int, results=2),
    "arith.mulsi_extended": same(2, is_int, results=2),
    "arith.cmpi": _comparison(is_int, _INTEGER_ORDER | {"eq", "ne"}),
    "arith.cmpf": _comparison(is_float, _FLOAT_ORDER),
    "arith.truncf": _conversion(is_float, is_float, -1),
    "arith.extf": _conversion(is_float, is_float, 1),
    "tt.fp_to_fp": _conversion(is_float, is_float, 0),
    "arith.sitofp": _conversion(is_int, is_float, 0),
    "arith.uitofp": _conversion(is_int, is_float, 0),
    "arith.fptosi": _conversion(is_float, is_int, 0),
    "arith.fptoui": _conversion(is_float, is_int, 0),
    "arith.extsi": _conversion(is_int, is_int, 1),
    "arith.extui": _conversion(is_int, is_int, 1),
    "arith.trunci": _conversion(is_int, is_int, -1),
    "arith.index_cast": _conversion(is_int, is_int, 0),
    "arith.index_castui": _conversion(is_int, is_int, 0),
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
    "arith.select": _select,
    "arith.constant": _constant,
}
