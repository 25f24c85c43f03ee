"""Ranks in the student's own process: threads, exactly one of which runs at any time.

A rank runs until it waits in a collective, returns or raises; then the next one runs, in rank
order. So `print` and the debugger work, and every run is the same. Each rank has modules of its
own, as it would have in a process of its own.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import mini_triton
from comm_sim import Comm, Topology

from grader.testing.collective import Array, Collective, Message, Raised, Returned
from grader.testing.conductor import Conductor, Doing
from grader.testing.explain import explain, frames_of_stack
from grader.testing.no_kernels import NoKernels
from grader.testing.on_rank import Rank, copied
from grader.testing.problems import Frame
from grader.testing.rank_comm import RankComm
from grader.testing.ranks import Ranks
from grader.testing.running import explained, surroundings
from grader.testing.student import shown_on_ranks
from grader.testing.submitted import SubmittedCode

#: Seconds that a thread gets to end when its call is broken off.
_PATIENCE = 5.0

#: Begins a call: counts it, notes its words for people, and has its file imported for each rank.
Begin = Callable[[str, str, Sequence[SubmittedCode]], None]
#: A region in which what goes on may be broken off by a clock; it is told what goes on.
During = Callable[[Callable[[], str]], AbstractContextManager[None]]


class _Unwound(BaseException):
    """Ends a thread that nobody waits for any more."""


class _Thread:
    """A rank's thread for one call. It runs only while the main thread is in `resume`."""

    def __init__(self, rank: int, folder: Path) -> None:
        self._rank = rank
        self._folder = folder
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._over = False
        self._message: Message | None = None
        self._reply: Array | ValueError | None = None
        self._thread: threading.Thread | None = None

    def start(
        self, name: str, rank: Rank, args: list[Any], kwargs: dict[str, Any], keep: int | None
    ) -> None:
        """Prepares the call; it begins with the first `resume`."""
        self._thread = threading.Thread(
            target=self._main,
            args=(name, lambda: rank.call(name, args, kwargs, keep)),
            name=f"rank {self._rank}",
            daemon=True,
        )

    def _main(self, name: str, call: Callable[[], Any]) -> None:
        try:
            message: Message = Returned(copied(call()))
        except _Unwound:
            return
        except BaseException as error:
            problem = explain(error, self._folder, name)
            if problem is not error:
                problem.__cause__ = error
                problem.__traceback__ = error.__traceback__
            message = Raised(problem)
        self._say(message)

    def answer(self, reply: Array | ValueError) -> None:
        """What the collective that it waits in is going to return or raise."""
        self._reply = reply

    def resume(self) -> Message:
        """Lets it run until it has a message."""
        assert self._thread is not None
        self._message = None
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._turn.release()
        self._back.acquire()
        assert self._message is not None
        return self._message

    def talk(self, wanted: Collective) -> Array:
        """In the thread: waits in a collective."""
        if not self._over:
            self._say(wanted)
            self._turn.acquire()
        if self._over:
            raise _Unwound
        reply, self._reply = self._reply, None
        assert reply is not None
        if isinstance(reply, ValueError):
            raise reply
        return reply

    def _say(self, message: Message) -> None:
        self._message = message
        self._back.release()

    def frames(self) -> tuple[Frame, ...]:
        """The lines of submitted files where it is."""
        ident = self._thread.ident if self._thread else None
        frame = sys._current_frames().get(ident) if ident is not None else None
        return frames_of_stack(frame, self._folder) if frame is not None else ()

    def end(self) -> None:
        """Ends it, wherever it is; only a call into C that takes long can hold it up."""
        thread, self._over = self._thread, True
        if thread is None or thread.ident is None:
            return
        self._turn.release()
        if thread.is_alive() and self._message is None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(_Unwound)
            )
        thread.join(_PATIENCE)


class LocalRanks(Ranks):
    """Ranks in this process. See `Ranks`.

    Args:
        n: how many.
        topology, byte_scale: see `Ranks`.
        folder: where the declared files are.
        files: their names, the main file first.
        begin: counts a call and has files imported.
        during: a region that a clock may break off.
    """

    def __init__(
        self,
        n: int,
        topology: Topology | None,
        byte_scale: float,
        folder: Path,
        files: Sequence[str],
        begin: Begin,
        during: During,
    ) -> None:
        super().__init__(n, topology, byte_scale)
        self._begin = begin
        self._during = during
        self._threads: list[_Thread] = []
        self._ranks = []
        for rank in range(n):
            code = SubmittedCode(folder, files)
            comm = RankComm(self._talk_of(rank), range(n), rank, code.folder)
            self._ranks.append(Rank(code, comm))

    def _talk_of(self, rank: int) -> Callable[[Collective], Array]:
        return lambda wanted: self._threads[rank].talk(wanted)

    def _conduct(
        self,
        name: str,
        args: Sequence[Sequence[Any]],
        kwargs: Mapping[str, Any],
        keep: int | None,
        comm: Comm,
    ) -> list[Any]:
        codes = [rank.code for rank in self._ranks]
        self._begin(name, shown_on_ranks(name, args, kwargs), codes)
        crew = _Crew(codes)
        self._threads = crew.threads
        for rank, thread, given in zip(self._ranks, crew.threads, args, strict=True):
            thread.start(name, rank, copied(list(given)), copied(dict(kwargs)), keep)
        conductor = Conductor(name, crew, comm)
        before = mini_triton.set_device(NoKernels())
        try:
            with (
                self._during(lambda: crew.doing()),
                explained(codes[0], name, crew.frames),
                surroundings(kernels=False),
            ):
                return conductor.run()
        finally:
            mini_triton.set_device(before)
            crew.end()
            if conductor.waiting:
                self._over = "some were left waiting"


class _Crew:
    """The threads of one call, for the conductor."""

    def __init__(self, codes: Sequence[SubmittedCode]) -> None:
        self._codes = codes
        self.threads = [_Thread(rank, code.folder) for rank, code in enumerate(codes)]
        self.doing: Callable[[], str] = str
        self._running: _Thread | None = None

    def messages(self, ranks: Collection[int], doing: Doing) -> Iterator[tuple[int, Message]]:
        """Lets these ranks run, one after the other."""
        for rank in sorted(ranks):
            self.doing = lambda rank=rank: doing([rank])  # type: ignore[misc]
            self._running = self.threads[rank]
            with self._codes[rank].importable():
                message = self._running.resume()
            self._running = None
            yield rank, message

    def answer(self, rank: int, reply: Array | ValueError) -> None:
        """For when it runs next."""
        self.threads[rank].answer(reply)

    def frames(self) -> tuple[Frame, ...]:
        """Where the rank is that runs."""
        return self._running.frames() if self._running else ()

    def end(self) -> None:
        """Leaves no thread behind."""
        for thread in self.threads:
            thread.end()
