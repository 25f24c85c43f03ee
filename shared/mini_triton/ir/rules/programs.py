"""Program ids, assertions and messages."""

from __future__ import annotations

from mini_triton.ir.program import Op
from mini_triton.ir.rules.checking import (
    Rule,
    is_truth,
    need,
    no_results,
    one_result,
    operands,
    result_is,
)
from mini_triton.ir.types import Type


def _program(op: Op) -> None:
    operands(op, 0)
    need(op.keywords in (("x",), ("y",), ("z",)), "it has no axis x, y or z")
    result_is(op, Type("i32"))


def _assert(op: Op) -> None:
    (condition,) = operands(op, 1)
    need(is_truth(condition), f"it does not take {condition}")
    no_results(op)


def _poison(op: Op) -> None:
    operands(op, 0)
    one_result(op)


def _nothing(op: Op) -> None:
    no_results(op)


PROGRAMS: dict[str, Rule] = {
    "ub.poison": _poison,
    "tt.get_program_id": _program,
    "tt.get_num_programs": _program,
    "tt.assert": _assert,
    "tt.print": _nothing,
    **dict.fromkeys(("gpu.barrier", "ttg.barrier", "llvm.intr.assume"), _nothing),
    **{f"tt.grid_dependency_{what}": _nothing for what in ("wait", "launch_dependents")},
}
