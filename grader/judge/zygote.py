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
import select
import signal
import socket
import sys
import time
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
    """A running zygote, as the supervisor holds it. One worker at a time.

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

    def finish(self) -> WorkerEnd:
        """Kills what is left of the worker, all its descendants included, and says how it ended.

        Raises:
            ZygoteGone: the zygote has ended.
        """
        try:
            self._connection.send(b'"finish"')
        except OSError as error:
            raise ZygoteGone(str(error)) from error
        return WorkerEnd(**self._receive())

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

    def run(self) -> None:
        """Serves until the supervisor hangs up."""
        self._settle()
        while True:
            data, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST_MESSAGE, 2)
            if not data:
                return
            message = json.loads(data)
            pid = self._fork(message, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            self._send({"pid": pid})
            end = self._wait(pid)
            if end is None:
                return
            self._send(end)

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

    def _send(self, message: dict[str, Any]) -> None:
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
        worker.main(connection, WorkerJob(job["folder"], tuple(job["files"]), job["seed"]))

    def _wait(self, pid: int) -> dict[str, Any] | None:
        """Waits for the order to finish, then kills and reaps; None if the supervisor is gone."""
        # `waitid` with WNOWAIT leaves the worker to be reaped below, with its resource usage.
        readable = select.select([self._control], [], [])[0]
        data = self._control.recv(_LONGEST_MESSAGE) if readable else b""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        early = os.waitid(os.P_PID, pid, flags) is not None
        status, usage = self._kill(pid)
        if not data:
            return None
        return {"status": status, "peak_memory": usage << 10, "early": early}

    def _kill(self, pid: int) -> tuple[int, int]:
        """Kills the worker and its descendants; returns its status and peak memory in KiB."""
        if self._uid is not None:
            isolation.sweep(self._uid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        # Orphans have become this process's own children, whatever session they are in.
        for _ in range(_KILL_ROUNDS):
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            if not _reap():
                break
        return status, usage.ru_maxrss


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
