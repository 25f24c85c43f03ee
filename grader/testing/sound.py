"""Kernels whose results are right by chance: what the simulator's checks find fails a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mini_triton import LaunchRecord
from mini_triton.checks import ALL, ORDER
from mini_triton.finding import in_words

from grader.testing.problems import KernelFault, Misuse, StudentError

#: What is looked for in the kernels of a submission. Not results that depend on the order of the
#: programs: where it is right, say, in which row of a buffer a program leaves its part of a sum.
CHECKS = tuple(check for check in ALL if check != ORDER)


@contextmanager
def sound(records: Sequence[LaunchRecord], source: Callable[[str, int], str]) -> Iterator[None]:
    """The region of a call, whose kernels must have no fault.

    Args:
        records: of its launches, from the device of who grades; complete when the region ends.
        source: gives the text of a submitted file's line.

    Raises:
        KernelFault: a kernel has a fault. If the call failed as well, that is most likely why: the
            text has both.
    """
    try:
        yield
    except (StudentError, Misuse) as problem:
        if words := _faults(records, source):
            raise KernelFault(f"{problem.message}\n\n{words}", problem.frames) from problem
        raise
    if words := _faults(records, source):
        raise KernelFault(words)


def _faults(records: Sequence[LaunchRecord], source: Callable[[str, int], str]) -> str:
    return in_words((finding for record in records for finding in record.findings), source)
