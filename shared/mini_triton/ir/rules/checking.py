"""What rules are made of: each raises `Violation`, or gives what it has made sure of."""

from __future__ import annotations

from collections.abc import Callable

from mini_triton.ir.program import Op
from mini_triton.ir.types import Type

#: Raises `Violation`, which says what is wrong with an operation of that name.
Rule = Callable[[Op], None]


class Violation(Exception):
    """What is wrong with an operation, as words."""


def need(holds: bool, what: str) -> None:
    """Raises `Violation` unless `holds`."""
    if not holds:
        raise Violation(what)


def shapes_of(kinds: tuple[Type, ...]) -> set[tuple[int, ...]]:
    """Their shapes."""
    return {kind.shape for kind in kinds}


def is_float(kind: Type) -> bool:
    """A float, of 8 bits too."""
    return not kind.is_pointer and kind.is_float


def is_int(kind: Type) -> bool:
    """An integer of any width, a truth value or an index."""
    return not kind.is_pointer and not kind.is_float


def is_truth(kind: Type) -> bool:
    """One bit."""
    return kind.element == "i1"


def whole(op: Op, name: str) -> int:
    """An attribute that is an integer."""
    value = op.attrs.get(name)
    need(type(value) is int, f"its attribute {name} is no integer")
    assert isinstance(value, int)
    return value


def axis_of(op: Op) -> int:
    """The attribute `axis`, within the rank of the first operand."""
    axis = whole(op, "axis")
    need(0 <= axis < len(op.operand_types[0].shape), f"it has no axis {axis}")
    return axis


def operands(op: Op, fewest: int, most: int | None = None) -> tuple[Type, ...]:
    """The operands' types, of which there are so many."""
    count = len(op.operands)
    need(fewest <= count <= (fewest if most is None else most), f"it takes no {count} operands")
    return op.operand_types


def one_result(op: Op) -> Type:
    """The type of its one result."""
    need(len(op.types) == 1, f"it has one result, not {len(op.types)}")
    return op.types[0]


def no_results(op: Op) -> None:
    """Has no results."""
    need(not op.types, f"it has no result, and here {len(op.types)}")


def result_is(op: Op, kind: Type) -> None:
    """Its one result is of that type."""
    found = one_result(op)
    need(found == kind, f"its result is {kind}, not {found}")


def all_alike(kinds: tuple[Type, ...]) -> None:
    """The types are one and the same."""
    for kind in kinds[1:]:
        need(kind == kinds[0], f"its operands differ: {kinds[0]} and {kind}")


def mask(kind: Type, shape: tuple[int, ...]) -> None:
    """A truth value for each lane; one for all of a tile will do."""
    need(is_truth(kind) and kind.shape in ((), shape), f"{kind} is no mask for {shape}")


def same(count: int, of: Callable[[Type], bool], results: int = 1) -> Rule:
    """`count` operands and `results` results of one type, which is `of` a kind."""

    def rule(op: Op) -> None:
        kinds = operands(op, count)
        need(of(kinds[0]), f"it does not take {kinds[0]}")
        all_alike((*kinds, *op.types))
        need(len(op.types) == results, f"it has {results} results, not {len(op.types)}")

    return rule
