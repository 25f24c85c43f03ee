"""Kernels whose results are right by chance: what the simulator's checks find fails a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mini_triton import LaunchRecord
from mini_triton.finding import in_words
from mini_triton.sanitize.checks import ALL

from grader.testing.problems import KernelFault, Misuse, StudentError

#: What is looked for in the kernels of a submission.
CHECKS = ALL


@contextmanager
def sound(records: Sequence[LaunchRecord], source: Callable[[str, int], str]) -> Iterator[None]:
    """The region of a call, whose kernels must have no fault.

    Args:
        records: of its launches, from the device of who grades; complete when the region ends.
        source: gives the text of a submitted file's line.

    Raises:
        KernelFault: a kernel has a fault. If the call failed as well, that is most likely why.
    """
    try:
        yield
    except (StudentError, Misuse):
        _require_none(records, source)
        raise
    _require_none(records, source)


def _require_none(records: Sequence[LaunchRecord], source: Callable[[str, int], str]) -> None:
    findings = [finding for record in records for finding in record.findings]
    if findings:
        raise KernelFault(in_words(findings, source))
