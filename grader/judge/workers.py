"""The workers of one test: one for calls without ranks, and those of ranks, when they are needed.

The supervisor's side of `staff`: it has the zygote fork workers, each with a home, a wire and a
pipe for what it prints, and knows in the end how each of them ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from grader.judge.isolation import Confinement
from grader.judge.printed import Printed
from grader.judge.staff import LONGEST_MESSAGE
from grader.judge.worker import WorkerJob
from grader.judge.zygote import WorkerEnd, Zygote
from grader.testing.case import test_seed


@dataclass(frozen=True)
class Start:
    """What all workers of a test are started with.

    Attributes:
        home: the home of the one without a rank; those of ranks lie beside it.
        submission: the folder with the submitted files.
        files: their names, the main file first.
        seed: the run's.
        number: the test's.
        seconds: of CPU time.
    """

    home: Path
    submission: Path
    files: tuple[str, ...]
    seed: int
    number: str
    seconds: int


class Workers:
    """Starts and ends the workers of one test.

    Args:
        zygote: forks them.
        start: what they are started with.
        printed: takes what they print.

    Attributes:
        pids: the process ids of those that run, the one without a rank first.
        outputs: the pipes that they print into, and the rank of each; None without one.
        ends: how those ended that have.
        hired: how many of ranks there have been.
    """

    def __init__(self, zygote: Zygote, start: Start, printed: Printed) -> None:
        self._zygote = zygote
        self._start = start
        self._printed = printed
        self.pids: list[int] = []
        self.outputs: dict[int, int | None] = {}
        self._of: dict[int, tuple[int, Path]] = {}  # process id: pipe, home of a rank
        self.ends: dict[int, WorkerEnd] = {}
        self.hired = 0
        self._main = 0

    def begin(self) -> tuple[socket.socket, int]:
        """Starts the worker for calls without ranks.

        Returns:
            The judge's end of its wire, and the pipe's end that it prints into.

        Raises:
            ZygoteGone: the zygote has ended.
        """
        job = WorkerJob(str(self._start.submission), self._start.files, self._seed("student"))
        output, theirs = os.pipe()
        self.outputs[output] = None
        try:
            self._main, connection = self._spawn(job, self._start.home, theirs)
        except BaseException:
            os.close(theirs)
            raise  # `finish` closes the other end
        return connection, theirs

    def answer(self, control: socket.socket) -> bool:
        """Does what the judge's child asks for; whether it is still there.

        Raises:
            ZygoteGone: the zygote has ended.
        """
        data = control.recv(LONGEST_MESSAGE)
        if not data:
            return False
        order = json.loads(data)
        if "hire" in order:
            self._hire(control, int(order["hire"]))
        else:
            self._dismiss(order["dismiss"])
            control.send(b"{}")
        return True

    def finish(self) -> None:
        """Ends all workers, and all that they have left behind.

        Raises:
            ZygoteGone: the zygote has ended.
        """
        try:
            self.ends |= self._zygote.finish()
        finally:
            for output, rank in self.outputs.items():
                self._printed.drain(output, rank)
                os.close(output)
            for _, home in self._of.values():
                shutil.rmtree(home, ignore_errors=True)
            self.pids.clear()
            self.outputs.clear()

    def end_of(self, pid: int) -> WorkerEnd:
        """How a worker ended; with 0 that for calls without ranks. After `finish`."""
        return self.ends[pid or self._main]

    def peak(self) -> int:
        """The largest resident memory that a worker ever had, in bytes. After `finish`."""
        return max((end.peak_memory for end in self.ends.values()), default=0)

    def _hire(self, control: socket.socket, n: int) -> None:
        connections: list[socket.socket] = []
        answer: dict[str, object] = {}
        try:
            pids = []
            for rank in range(n):
                pid, connection = self._spawn_rank(rank, n)
                pids.append(pid)
                connections.append(connection)
            answer = {"pids": pids}
            self.hired += n
        except OSError as error:
            answer = {"error": str(error)}
        descriptors = [connection.fileno() for connection in connections]
        with contextlib.suppress(OSError):  # the child is gone
            socket.send_fds(control, [json.dumps(answer).encode()], descriptors)
        for connection in connections:
            connection.close()

    def _spawn_rank(self, rank: int, n: int) -> tuple[int, socket.socket]:
        # No rank can guess where another's home is, even if no kernel bars the way there.
        home = self._start.home.parent / f"rank-{secrets.token_hex(16)}"
        home.mkdir(mode=0o700)
        if self._zygote.uid is not None:
            os.chown(home, self._zygote.uid, self._zygote.uid)
        seed = self._seed(f"student rank {rank}")
        job = WorkerJob(str(self._start.submission), self._start.files, seed, n, rank)
        output, theirs = os.pipe()
        try:
            pid, connection = self._spawn(job, home, theirs)
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(theirs)
        self.outputs[output] = rank
        self._of[pid] = output, home
        return pid, connection

    def _dismiss(self, pids: list[int]) -> None:
        self.ends |= self._zygote.dismiss(pids)
        for pid in pids:
            self.pids.remove(pid)
            output, home = self._of.pop(pid)
            self._printed.drain(output, self.outputs.pop(output))
            os.close(output)
            shutil.rmtree(home, ignore_errors=True)

    def _spawn(self, job: WorkerJob, home: Path, output: int) -> tuple[int, socket.socket]:
        settings = Confinement(
            home=home,
            submission=self._start.submission,
            uid=self._zygote.uid,
            seconds=self._start.seconds,
        )
        ours, theirs = socket.socketpair()
        try:
            pid = self._zygote.spawn(job, settings, theirs, output)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.pids.append(pid)
        return pid, ours

    def _seed(self, whose: str) -> int:
        return test_seed(self._start.seed, f"{self._start.number} {whose}")
