"""`run`: starts n ranks, each a process, and collects what they return.

For programs and tests on one machine. On several, `torchrun` starts processes; there, call
`torch.distributed.init_process_group()` and make a `TorchComm`.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.multiprocessing.spawn import ProcessContext, ProcessException

from spmd.torch_comm import BackendError, TorchComm

#: By short names. Beside NCCL there is gloo, for what ranks tell each other about their arrays.
_BACKENDS = {"gloo": "gloo", "nccl": "cpu:gloo,cuda:nccl"}
#: Seconds that ranks have to end by themselves after one has failed.
_GRACE = 2.0
#: On Linux, ranks are forked off one process that has loaded torch, but has used nothing of it.
_START = "forkserver" if sys.platform == "linux" else "spawn"
#: Guards what is set for all while processes start.
_STARTING = threading.Lock()


class RankError(RuntimeError):
    """A rank failed; `rank` says which, and the message has its traceback."""

    def __init__(self, rank: int, message: str) -> None:
        super().__init__(message)
        self.rank = rank


def run(
    fn: Callable[..., Any],
    n: int,
    *args: Any,
    backend: str | None = None,
    timeout: float = 300.0,
) -> list[Any]:
    """Runs `fn(comm, *args)` in n processes, each of which is a rank.

        def program(comm, length):
            (total,) = comm.all_reduce([np.full(length, comm.ranks[0])])
            return total[0]

        if __name__ == "__main__":               # since new processes import this file
            print(spmd.run(program, 4, 10))      # [6, 6, 6, 6]

    Each process computes in one thread, and with NCCL has the GPU of its rank's number as its
    current device. They find each other through a file of their own, so that many of these calls
    may be under way at once.

    Args:
        fn: a function that a new process can import; it gets a `TorchComm`.
        n: ranks.
        args: the same for all ranks; they are pickled.
        backend: "gloo", or "nccl", which needs n GPUs; None takes NCCL where it can.
        timeout: seconds that a rank waits for another one in a collective.

    Returns:
        What rank 0, 1, … returned. It is pickled: return numpy arrays, or tensors on the CPU.

    Raises:
        ValueError: n is less than 1, there is no such backend, or it has too few GPUs.
        RankError: a rank raised an exception or died. The others have been ended.
    """
    name = _backend(backend, n)
    main = sys.modules["__main__"]
    if getattr(fn, "__module__", None) == "__main__" and not hasattr(main, "__file__"):
        raise ValueError(
            f"new processes cannot import {getattr(fn, '__name__', fn)} from an interactive "
            "session; write it to a file, and import it from there"
        )
    with tempfile.TemporaryDirectory(prefix="spmd-", ignore_cleanup_errors=True) as folder:
        files = _Files(Path(folder))
        files.job.write_bytes(pickle.dumps((fn, args, dict(os.environ))))
        with _STARTING, _one_thread():
            get_context(_START).set_forkserver_preload(["torch.distributed"])
            context = mp.start_processes(
                _rank, (n, files, name, timeout), nprocs=n, join=False, start_method=_START
            )
        assert context is not None
        try:
            while not context.join(grace_period=_GRACE):
                pass
        except ProcessException as error:
            _blame(files, n, context, error, timeout)
        finally:
            for process in context.processes:
                if process.is_alive():  # as after Ctrl-C
                    process.kill()
        for rank in range(n):
            if not files.result(rank).exists():
                raise RankError(rank, f"rank {rank} of {n} exited before fn returned")
        return [pickle.loads(files.result(rank).read_bytes()) for rank in range(n)]


@dataclass(frozen=True)
class _Files:
    """What the processes of a run share."""

    folder: Path

    @property
    def job(self) -> Path:
        """The function and its arguments."""
        return self.folder / "job"

    @property
    def store(self) -> Path:
        """Where the ranks meet."""
        return self.folder / "store"

    def result(self, rank: int) -> Path:
        """What it returned."""
        return self.folder / f"result-{rank}"

    def report(self, rank: int) -> Path:
        """Why it failed: a pickled `_Report`."""
        return self.folder / f"report-{rank}"


@dataclass(frozen=True)
class _Report:
    """How a rank failed.

    Attributes:
        when: seconds of the machine's clock.
        follows: it failed in a collective, likely since another rank had ended.
        late: it has waited for another rank for too long, in the backend's words.
        where: the method of its communicator that failed; "" if that was none.
        notes: what was added to the exception, in lines.
        summary: the exception in one line.
        details: its traceback.
    """

    when: float
    follows: bool
    late: bool
    where: str
    notes: tuple[str, ...]
    summary: str
    details: str


def _backend(backend: str | None, n: int) -> str:
    if n < 1:
        raise ValueError(f"n is {n}; there is one rank or more")
    gpus = torch.cuda.device_count()
    if backend is None:
        return "nccl" if gpus >= n else "gloo"
    if backend not in _BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; there are {list(_BACKENDS)}")
    if backend == "nccl" and gpus < n:
        raise ValueError(f"nccl needs a GPU for each of {n} ranks; this machine has {gpus}")
    return backend


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that start now compute in one thread: libraries look when they are loaded."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def _rank(rank: int, n: int, files: _Files, backend: str, timeout: float) -> None:
    """The process of a rank."""
    try:
        fn, args, environment = pickle.loads(files.job.read_bytes())
        os.environ.update(environment)  # which may be younger than the process forked from
        result = pickle.dumps(_call(fn, args, rank, n, files, backend, timedelta(seconds=timeout)))
        files.result(rank).write_bytes(result)
    except Exception as error:
        # Before this process ends, which the others notice.
        summary = "".join(traceback.format_exception_only(error)).strip()
        follows = isinstance(error, BackendError)
        details = "".join(traceback.format_exception(type(error), error, _inner(error)))
        notes = tuple(getattr(error, "__notes__", ()))
        late = follows and re.search("timed out|timeout", str(error), re.IGNORECASE) is not None
        now = time.monotonic()
        report = _Report(now, follows, late, _method(error), notes, summary, details)
        files.report(rank).write_bytes(pickle.dumps(report))
        sys.exit(1)


def _inner(error: BaseException) -> TracebackType | None:
    """The traceback of an exception, without the frames of this file that it begins with."""
    frames = error.__traceback__
    while frames and frames.tb_next and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return frames


def _method(error: BaseException) -> str:
    """The method of a `TorchComm` that an exception comes out of; "" if that is none."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if isinstance(frame.f_locals.get("self"), TorchComm):
            return frame.f_code.co_name
    return ""


def _call(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    rank: int,
    n: int,
    files: _Files,
    backend: str,
    timeout: timedelta,
) -> Any:
    torch.set_num_threads(1)
    if sys.platform == "linux":  # all ranks are on this machine, whatever its name resolves to
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if backend == "nccl":
        torch.cuda.set_device(rank)
    try:
        dist.init_process_group(
            _BACKENDS[backend],
            init_method=files.store.as_uri(),
            rank=rank,
            world_size=n,
            timeout=timeout,
        )
    except RuntimeError as error:  # another rank was there first, and has ended since
        raise BackendError(f"rank {rank} of {n} does not find the others: {error}") from error
    comm = TorchComm(timeout=timeout)
    result = fn(comm, *args)
    comm.finish()
    dist.destroy_process_group()
    return result


def _blame(
    files: _Files, n: int, context: ProcessContext, error: ProcessException, timeout: float
) -> NoReturn:
    """Raises the `RankError` of the rank that failed first, not of one that lost its peer then."""
    reports: dict[int, _Report] = {
        rank: pickle.loads(files.report(rank).read_bytes())
        for rank in range(n)
        if files.report(rank).exists()
    }
    own = {rank: report for rank, report in reports.items() if not report.follows}
    died = [
        rank
        for rank, process in enumerate(context.processes)
        if rank not in reports and process.exitcode not in (0, -signal.SIGTERM)  # ended from here
    ]
    busy = [rank for rank in range(n) if rank not in reports and rank not in died]
    waiting = [rank for rank, report in reports.items() if report.late]
    if busy and waiting and not own and not died:
        report = reports[waiting[0]]
        words = (
            f"rank {busy[0]} of {n} did not come to {report.where or 'the others'}, where rank "
            f"{waiting[0]} has waited for it for {timeout:g} s"
        )
        text = "\n".join((words, *report.notes))
        raise RankError(busy[0], f"{text}\n\n{report.details}") from None
    if own or not died:
        rank, report = min((own or reports).items(), key=lambda item: item[1].when)
        raise RankError(
            rank, f"rank {rank} of {n} failed: {report.summary}\n\n{report.details}"
        ) from None
    rank = died[0]
    code = context.processes[rank].exitcode
    assert code is not None
    how = f"exit code {code}"
    hint = "A script calls run under `if __name__ == '__main__':`, since new processes import it."
    if code < 0:
        how = f"signal {signal.Signals(-code).name}"
        hint = "SIGKILL is also what a machine that is short of memory sends."
    raise RankError(
        rank, f"rank {rank} of {n} died with {how}; its output may say why. ({hint})"
    ) from error
