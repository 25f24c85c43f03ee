"""The zygote: a process that has imported torch and Triton, and forks students' workers.

Importing torch costs seconds on half a core; forking costs milliseconds and shares the memory. The
zygote is forked off before any test, solution or expected value is in memory, forgets its
environment and import path, and never runs student code itself. It is the parent of all that a
worker leaves behind (a daemon's `setsid` does not escape it), and kills it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from grader import environment
from grader.judge import isolation
from grader.judge.isolation import Confinement
from grader.judge.worker import WorkerJob

_LONGEST_MESSAGE = 1 << 16
#: Rounds of killing what is left of a worker; each finds what the last one's victims forked.
_KILL_ROUNDS = 50


class ZygoteGone(Exception):
    """The zygote's process has ended."""


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker ended.

    Attributes:
        status: as `os.waitpid` gives it: see `exit_words`.
        peak_memory: its largest resident memory in bytes, children excluded.
        early: whether it had ended before it was told to.
    """

    status: int
    peak_memory: int
    early: bool


def exit_words(status: int) -> str:
    """`exit code 3`, or `signal SIGSEGV`."""
    if os.WIFSIGNALED(status):
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(os.WTERMSIG(status)).name}"
        return f"signal {os.WTERMSIG(status)}"
    return f"exit code {os.waitstatus_to_exitcode(status)}"


class Zygote:
    """A running zygote, as the supervisor holds it.

    Args:
        uid: the user that workers become; None if the judge is no root.
    """

    def __init__(self, uid: int | None) -> None:
        environment.available()  # once, not in each zygote
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                ours.close()
                _Server(theirs, uid).run()
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        self.pid = pid
        self.uid = uid
        self._connection = ours

    def spawn(
        self, job: WorkerJob, settings: Confinement, connection: socket.socket, output: int
    ) -> int:
        """Forks a worker.

        Args:
            job: what it is for.
            settings: how it is confined.
            connection: its end of the wire; may be closed here afterwards.
            output: the descriptor that takes its stdout and stderr.

        Returns:
            Its process id.

        Raises:
            ZygoteGone: the zygote has ended.
        """
        paths = {"home": str(settings.home), "submission": str(settings.submission)}
        message = {"job": asdict(job), "settings": {**asdict(settings), **paths}}
        try:
            socket.send_fds(
                self._connection, [json.dumps(message).encode()], [connection.fileno(), output]
            )
        except OSError as error:
            raise ZygoteGone(str(error)) from error
        return int(self._receive()["pid"])

    def dismiss(self, workers: Sequence[int]) -> dict[int, WorkerEnd]:
        """Kills some workers and all descendants of theirs, and says how each ended.

        Args:
            workers: their process ids.

        Raises:
            ZygoteGone: the zygote has ended.
        """
        return self._ends({"dismiss": list(workers)})

    def finish(self) -> dict[int, WorkerEnd]:
        """Kills what is left of all workers, descendants included, and says how each ended.

        Raises:
            ZygoteGone: the zygote has ended.
        """
        return self._ends({"finish": True})

    def _ends(self, order: dict[str, Any]) -> dict[int, WorkerEnd]:
        try:
            self._connection.send(json.dumps(order).encode())
        except OSError as error:
            raise ZygoteGone(str(error)) from error
        return {int(pid): WorkerEnd(**end) for pid, end in self._receive().items()}

    def close(self) -> None:
        """Ends the zygote."""
        self._connection.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _receive(self) -> dict[str, Any]:
        try:
            data = self._connection.recv(_LONGEST_MESSAGE)
        except OSError as error:
            raise ZygoteGone(str(error)) from error
        if not data:
            raise ZygoteGone("it closed its connection")
        message: dict[str, Any] = json.loads(data)
        return message


class _Server:
    """The zygote's side."""

    def __init__(self, control: socket.socket, uid: int | None) -> None:
        self._control = control
        self._uid = uid
        self._modules = environment.available()
        self._workers: set[int] = set()

    def run(self) -> None:
        """Serves until the supervisor hangs up."""
        self._settle()
        while True:
            data, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST_MESSAGE, 2)
            if not data:
                self._end_all()
                return
            order = json.loads(data)
            if "job" in order:
                pid = self._fork(order, descriptors)
                self._workers.add(pid)
                for descriptor in descriptors:
                    os.close(descriptor)
                self._send({"pid": pid})
            elif "dismiss" in order:
                self._send(self._end(set(order["dismiss"])))
            else:
                self._send(self._end_all())

    def _settle(self) -> None:
        """Becomes a clean process: no environment, no import path, no descriptors but its own."""
        os.setsid()
        for which in (signal.SIGINT, signal.SIGTERM):
            signal.signal(which, signal.SIG_IGN if which == signal.SIGINT else signal.SIG_DFL)
        isolation.die_with_parent()
        isolation.adopt_orphans()
        isolation.close_to_others()
        isolation.forget_environment()
        isolation.forget_paths()
        # After all imports of our own: from here on, what a container has not is not there, even if
        # this process should have imported it.
        for name in list(sys.modules):
            if name.partition(".")[0] not in {*self._modules, "__main__", "__mp_main__"}:
                del sys.modules[name]
        sys.meta_path.insert(0, environment.OnlyAvailable(self._modules))
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        _close_all_but({0, 1, 2, self._control.fileno()})

    def _send(self, message: Mapping[Any, Any]) -> None:
        self._control.send(json.dumps(message).encode())

    def _fork(self, message: dict[str, Any], descriptors: list[int]) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            self._become_worker(message, descriptors)
        finally:
            os._exit(70)

    def _become_worker(self, message: dict[str, Any], descriptors: list[int]) -> None:
        from grader.judge import worker

        wire, output = descriptors
        for standard in (1, 2):
            os.dup2(output, standard)
        connection = socket.socket(fileno=wire)
        self._control.close()
        _close_all_but({0, 1, 2, wire})
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        settings, job = message["settings"], message["job"]
        isolation.confine(
            Confinement(
                home=Path(settings["home"]),
                submission=Path(settings["submission"]),
                uid=settings["uid"],
                seconds=settings["seconds"],
            )
        )
        isolation.die_with_parent()  # after the change of user, which would reset it
        # Block buffering would lose what a killed process had printed.
        sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="replace")
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace")
        worker.main(connection, WorkerJob(**{**job, "files": tuple(job["files"])}))

    def _end_all(self) -> dict[int, dict[str, Any]]:
        """Kills all workers, whatever they have left behind, and says how each ended."""
        early = self._early(self._workers)
        if self._uid is not None:
            isolation.sweep(self._uid)
        ends = self._killed(set(self._workers), early)
        # Orphans have become this process's own children, whatever session they are in.
        for _ in range(_KILL_ROUNDS):
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            if not _reap():
                break
        return ends

    def _end(self, workers: set[int]) -> dict[int, dict[str, Any]]:
        """Kills some workers and what descends from no other, and says how each ended."""
        workers &= self._workers
        ends = self._killed(workers, self._early(workers))
        for _ in range(_KILL_ROUNDS):
            strangers = self._strangers()
            if not strangers:
                break
            for pid in strangers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
            for pid in strangers:
                with contextlib.suppress(ChildProcessError):  # its parent is about to go as well
                    os.waitpid(pid, os.WNOHANG)
        return ends

    def _strangers(self) -> list[int]:
        """Descendants that are no worker, nor descend from one."""
        parents: dict[int, int] = {}
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                parents[process.pid] = process.ppid()
        strangers = []
        for pid in parents:
            above = pid
            while above in parents and above not in self._workers:
                above = parents[above]
            if above not in self._workers:
                strangers.append(pid)
        return strangers

    def _early(self, workers: set[int]) -> set[int]:
        """Those that have ended by themselves."""
        # WNOWAIT leaves them to be reaped below, with their resource usage.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return {pid for pid in workers if os.waitid(os.P_PID, pid, flags) is not None}

    def _killed(self, workers: set[int], early: set[int]) -> dict[int, dict[str, Any]]:
        """Kills and reaps workers; status and peak memory of each."""
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ends = {}
        for pid in workers:
            _, status, usage = os.wait4(pid, 0)
            peak = usage.ru_maxrss << 10
            ends[pid] = {"status": status, "peak_memory": peak, "early": pid in early}
        self._workers -= workers
        return ends


def _reap() -> bool:
    """Reaps the children that are dead; whether any is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            time.sleep(0.01)
            return True


def _close_all_but(keep: set[int]) -> None:
    for entry in list(Path("/proc/self/fd").iterdir()):
        descriptor = int(entry.name)
        if descriptor not in keep:
            with contextlib.suppress(OSError):
                os.close(descriptor)
