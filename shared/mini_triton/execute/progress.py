"""How far a launch has come: what an interrupt tells, and how threads are told to stop."""

from __future__ import annotations

from mini_triton.errors import KernelError
from mini_triton.ir.program import Op


class Abandoned(KernelError):
    """Raised in a thread whose work nobody waits for any more."""


class Progress:
    """Shared by all threads of a launch. `op`: the operation that a block last began with."""

    def __init__(self) -> None:
        self.op: Op | None = None
        self._abandoned = False

    def reach(self, op: Op) -> None:
        """Called wherever a block begins, and so on each trip of a loop.

        Raises:
            Abandoned: the launch has failed or was interrupted elsewhere.
        """
        if self._abandoned:
            raise Abandoned
        self.op = op

    def abandon(self) -> None:
        """Makes all threads stop at the next block."""
        self._abandoned = True
