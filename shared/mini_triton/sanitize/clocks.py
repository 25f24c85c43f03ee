"""Which program's work another program has surely seen: order that atomic operations make.

Vector clocks (Mattern 1989; used for races as in FastTrack, Flanagan and Freund, PLDI 2009): a
program's clock says up to which of its own and of others' steps all is seen. An atomic operation
that *releases* leaves the clock at its element; one that *acquires* takes what lies there. As PTX
has it, an update whose old value nobody takes cannot acquire, and one of scope cta orders nothing
between programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_triton.ir.program import Op, Program

Array = np.ndarray

ATOMICS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store")
#: Beyond so many programs, elements that order them, or lanes of one operation, clocks would cost
#: too much; then all programs that have released or acquired anything count as ordered.
_MOST_PROGRAMS = 2_048
_MOST_ELEMENTS = 1_024
_MOST_LANES = 4_096


def acquires(op: Op) -> bool:
    """Whether what others have released is seen after the operation."""
    return op.used and _has(op, "acquire", "acq_rel") and not local(op)


def releases(op: Op) -> bool:
    """Whether others that acquire see what was done before the operation."""
    return _has(op, "release", "acq_rel") and not local(op)


def local(op: Op) -> bool:
    """Whether an atomic operation is atomic only among the threads of one program."""
    return op.name in ATOMICS and "cta" in op.keywords


def _has(op: Op, *words: str) -> bool:
    return op.name in ATOMICS and any(word in op.keywords for word in words)


def orders(program: Program) -> bool:
    """Whether a kernel can order its programs at all."""
    ops = program.walk()
    return any(acquires(op) for op in ops) and any(releases(op) for op in ops)


class Clocks:
    """The clocks of a launch's programs.

    Args:
        programs: how many there are.
    """

    def __init__(self, programs: int) -> None:
        self._exact = programs <= _MOST_PROGRAMS
        size = programs if self._exact else 0
        self._seen = np.zeros((size, size), np.int32)  # [program, other]: of the other's steps
        np.fill_diagonal(self._seen, 1)
        self._left: dict[tuple[int, int], Array] = {}
        self._took_part = np.zeros(programs, bool)

    def now(self, programs: Array) -> Array:
        """The own step that each program is at."""
        return self._seen[programs, programs] if self._exact else np.zeros(len(programs), np.int32)

    def ordered(self, programs: Array, others: Array, steps: Array) -> Array:
        """Whether each program has seen the given step of another one, elementwise."""
        if self._exact:
            return self._seen[programs, others] >= steps
        return self._took_part[programs] & self._took_part[others]

    def pass_on(self, op: Op, region: Any, at: Array, programs: Array) -> None:
        """Does what an atomic operation does to clocks, lane after lane."""
        acquire, release = acquires(op), releases(op)
        if not (acquire or release):
            return
        self._took_part[programs] = True
        if len(at) > _MOST_LANES or len(self._left) > _MOST_ELEMENTS:
            self._exact = False
        if not self._exact:
            return
        for unit, program in zip(at.tolist(), programs.tolist(), strict=True):
            key = (id(region), unit * region.unit)
            own = self._seen[program]
            left = self._left.get(key)
            if acquire and left is not None:
                np.maximum(own, left, out=own)
            if release:
                if op.name == "tt.atomic_store":  # it ends what lay there
                    left = None
                self._left[key] = own.copy() if left is None else np.maximum(left, own)
                own[program] += 1
