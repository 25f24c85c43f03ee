"""Chunks of programs on all cores.

torch's operations let other threads run while they work, so chunks of programs can run side by
side. What they find is taken in grid order, as if they had run one after the other.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


@cache
def cores() -> int:
    """How many cores this process may use: those it may run on, less if its time is limited."""
    allowed = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return allowed if quota == "max" else max(1, min(allowed, int(quota) // int(period)))
    except (OSError, ValueError):
        return allowed


def in_order(
    chunks: Iterable[Chunk],
    run: Callable[[Chunk], Result],
    take: Callable[[Result], None],
    abandon: Callable[[], None],
    workers: int,
) -> None:
    """Calls `run` on all chunks, `workers` at a time, and `take` on the results in order.

    No more results wait than there are workers. The first exception in order is raised; chunks
    after it may have been run, and none is running when it is: `abandon` tells them to stop.
    """

    def alone(chunk: Chunk) -> Result:
        torch.set_num_threads(1)
        with torch.no_grad():
            return run(chunk)

    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers, "mini_triton") as pool:
        try:
            for chunk in chunks:
                if len(waiting) > workers:
                    take(waiting.popleft().result())
                waiting.append(pool.submit(alone, chunk))
            while waiting:
                take(waiting.popleft().result())
        except BaseException:
            abandon()
            pool.shutdown(cancel_futures=True)
            raise
