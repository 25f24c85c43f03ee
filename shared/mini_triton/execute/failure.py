"""The errors of a launch that takes too much, and of one that fails as no handler meant to."""

from __future__ import annotations

from mini_triton.errors import BadProgram, KernelError, OverBudget
from mini_triton.execute.liveness import in_words
from mini_triton.ir.program import Op

#: What torch says when an allocation fails.
_NO_MEMORY = ("can't allocate memory", "not enough memory")
_LONGEST = 300


def failure(kernel: str, op: Op, error: Exception) -> KernelError:
    """The error to raise instead: a `KernelError` that names the operation and its line.

    Programs come from other processes, and `ir.verify` cannot foresee all that one may hold.
    """
    words = str(error).partition("\n")[0][:_LONGEST]
    if isinstance(error, MemoryError) or any(text in words for text in _NO_MEMORY):
        tiles = ", ".join(map(in_words, op.types)) or "no result"
        return OverBudget.at(
            op.where,
            kernel,
            f"there is no memory for {op.name}: {tiles}",
            hint="choose smaller BLOCK sizes",
        )
    kinds = ", ".join(map(str, op.operand_types)) or "no operands"
    return BadProgram.at(
        op.where,
        kernel,
        f"{op.name} of {kinds} failed: {type(error).__name__}: {words}",
        why="Triton's front end makes no such program, or the simulator is wrong there",
        hint="write this line with other operations",
    )


def too_many_steps(op: Op, kernel: str, grid: tuple[int, int, int], most: int) -> OverBudget:
    """The error of a launch that has run `most` operations, and would go on with `op`."""
    error = OverBudget.at(
        op.where,
        kernel,
        f"more than {most:,} operations, and the launch has not ended",
        "would have been next",
        facts=[("grid", f"{grid}; programs that run together take each operation once")],
        hint="look at the loop around this line: does its condition ever become false? If it does, "
        "take larger tiles, so that it has fewer turns, or launch fewer programs",
    )
    error.setting = f"MINI_TRITON_STEPS to more than {most}"
    return error
