"""How much memory a test's student processes hold."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import psutil


def resident(pid: int) -> int:
    """Resident memory of a process in bytes; 0 once it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def descendants(zygote: int) -> list[int]:
    """All processes of students, those that were orphaned included; none if the zygote is gone."""
    with contextlib.suppress(psutil.Error):
        return [process.pid for process in psutil.Process(zygote).children(recursive=True)]
    return []


def held(zygote: int, workers: Sequence[int], family: Sequence[int]) -> int:
    """Bytes that workers and their descendants hold.

    What forked workers share with the zygote is resident in each of them, but there once. So of the
    largest all counts, and of the others what is above the zygote's own size. A process that a
    worker has started counts whole.

    Args:
        zygote: the process that workers are forked from.
        workers: the workers.
        family: all processes, see `descendants`; workers may be among them.
    """
    sizes = sorted(map(resident, workers), reverse=True)
    others = sum(resident(pid) for pid in family if pid not in workers)
    if len(sizes) < 2:
        return sum(sizes) + others
    shared = resident(zygote)
    return sizes[0] + sum(max(0, size - shared) for size in sizes[1:]) + others
