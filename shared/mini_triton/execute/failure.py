"""What becomes of an exception that an operation's handler did not mean to raise."""

from __future__ import annotations

from mini_triton.errors import BadProgram, KernelError, OverBudget
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
        return OverBudget(
            f"{op.where}: kernel {kernel}: there is no memory for {op.name} "
            f"({', '.join(map(str, op.types)) or 'no result'}). No memory was changed; use smaller "
            "blocks."
        )
    kinds = ", ".join(map(str, op.operand_types)) or "no operands"
    return BadProgram(
        f"{op.where}: kernel {kernel}: {op.name} of {kinds} failed: {type(error).__name__}: "
        f"{words}. No memory was changed. Triton's front end makes no such program, "
        "or the simulator is wrong there; write this line with other operations."
    )
