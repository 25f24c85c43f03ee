"""Runs a process and measures what it and all its descendants take."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

#: Seconds between two looks at the memory. A peak that is shorter may be missed.
_PERIOD = 0.1
_GRACE = 5.0


@dataclass(frozen=True)
class Usage:
    """What a process took, its descendants included.

    Attributes:
        status: its exit status; negative, the signal that ended it.
        seconds: of wall time.
        cpu_seconds: of all cores, in user and system mode.
        peak_memory: the largest sum of proportional set sizes, in bytes: each page that is in
            memory is counted once, however many processes share it, files that are mapped
            included. Looked at ten times a second.
        timed_out: whether it was ended because it took too long.
        left: names of descendants that were still there after it had ended, and were killed.
    """

    status: int
    seconds: float
    cpu_seconds: float
    peak_memory: int
    timed_out: bool
    left: tuple[str, ...]


def run(
    command: Sequence[str],
    *,
    log: Path,
    seconds: float,
    environment: Mapping[str, str],
    folder: Path,
) -> Usage:
    """Runs a command to its end, or until its time is over.

    Args:
        command: program and arguments.
        log: a file that takes what it prints, on stdout and stderr.
        seconds: how long it may take.
        environment: all of its environment.
        folder: where it runs.

    Raises:
        OSError: it cannot be started.
    """
    before = _cpu_of_children()
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    peak, timed_out = 0, False
    seen: dict[int, psutil.Process] = {}
    try:
        while process.poll() is None:
            if time.monotonic() - start > seconds:
                timed_out = True
                break
            peak = max(peak, _memory(process.pid, seen))
            time.sleep(_PERIOD)
    finally:
        took = time.monotonic() - start
        left = _kill(process, seen)
    cpu = _cpu_of_children() - before
    return Usage(process.returncode, took, cpu, peak, timed_out, left)


def _cpu_of_children() -> float:
    """CPU seconds of all processes that this one has waited for, and that those have waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _memory(pid: int, seen: dict[int, psutil.Process]) -> int:
    """Proportional set size of a process and its descendants; remembers them in `seen`."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            seen[process.pid] = process
            with contextlib.suppress(psutil.Error):
                total += _proportional(process)
    return total


def _proportional(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:  # another user's, and we are no root: shared pages count again
        return int(process.memory_info().rss)


def _kill(process: subprocess.Popen[bytes], seen: dict[int, psutil.Process]) -> tuple[str, ...]:
    """Ends the process if it runs, and whatever it has started, in whichever session it is."""
    ended = process.poll() is not None
    left = []
    deadline = time.monotonic() + _GRACE
    if ended:  # its children may be about to end with it
        alive = [one for one in seen.values() if one.pid != process.pid and _alive(one)]
        psutil.wait_procs(alive, timeout=_GRACE / 5)
    while alive := [one for one in seen.values() if _alive(one)]:
        for one in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in one.children(recursive=True):
                    seen[child.pid] = child
                if ended:
                    left.append(one.name())
                one.kill()
        if process.poll() is None:
            process.wait()
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, 9)
        process.wait()
    return tuple(sorted(set(left)))


def _alive(process: psutil.Process) -> bool:
    """Whether it runs (and is still the same); a zombie does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
