"""Ranks as the judge's tests see them: one worker each, at the end of a wire of its own."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from comm_sim import Comm, Topology

from grader.judge import wire
from grader.judge.arguments import ArgumentEncoder
from grader.judge.faults import WorkerGone
from grader.judge.rank_wire import checked_collective, most_bytes, reply_frame
from grader.judge.staff import RankProcess, Staff
from grader.testing.collective import Array, Message, Raised, Returned
from grader.testing.conductor import Conductor, Doing
from grader.testing.problems import Crashed
from grader.testing.ranks import Ranks
from grader.testing.student import shown_on_ranks

if TYPE_CHECKING:
    from grader.judge.remote import RemoteStudent

#: Seconds after which it is told what ranks are waited for.
_TELL_AFTER = 0.1


class RemoteRanks(Ranks):
    """Ranks in workers. See `Ranks`.

    Args:
        n: how many.
        topology, byte_scale: see `Ranks`.
        student: the submission that they run.
        staff: gets the workers, with the first call.
    """

    def __init__(
        self,
        n: int,
        topology: Topology | None,
        byte_scale: float,
        student: RemoteStudent,
        staff: Staff | None,
    ) -> None:
        super().__init__(n, topology, byte_scale)
        if staff is None:
            raise ValueError("there is nobody to fork processes for ranks")
        self._student = student
        self._staff = staff
        self._processes: list[RankProcess] = []
        self._known: set[str] = set()
        self._crashed = False

    def close(self) -> None:
        """Ends the session and its processes."""
        if self._processes and not self._crashed:
            self._staff.dismiss(self._processes)
        super().close()
        self._processes = []

    def _conduct(
        self,
        name: str,
        args: Sequence[Sequence[Any]],
        kwargs: Mapping[str, Any],
        keep: int | None,
        comm: Comm,
    ) -> list[Any]:
        self._student.begin(name, shown_on_ranks(name, args, kwargs))
        if not self._processes:
            self._processes = self._staff.hire(self.n)
        crew = _Crew(name, self._student, self._processes)
        conductor = Conductor(name, crew, comm)
        try:
            self._import(name, crew)
            self._student.doing(f"in {name}")
            for rank, given in enumerate(args):
                crew.request(rank, _request(name, given, kwargs, keep))
            return conductor.run()
        except WorkerGone:
            # It is left to be found dead: by the time it has closed its wire it may not quite be.
            self._crashed = True
            raise
        finally:
            if conductor.waiting:
                self._over = "some were left waiting"

    def _import(self, name: str, crew: _Crew) -> None:
        """Has a function looked up on every rank, apart from the call: its file is imported then.

        Raises:
            StudentProblem: that of the lowest rank where it failed.
        """
        if name in self._known:
            return
        crew.importing = True
        with self._student.importing(name):
            for rank in range(self.n):
                crew.request(rank, wire.pack({"op": "import", "name": name}))
            messages = dict(crew.messages(range(self.n), lambda running: ""))
            for _, message in sorted(messages.items()):
                if isinstance(message, Raised):
                    raise message.problem
        crew.importing = False
        self._known.add(name)


def _request(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], keep: int | None) -> bytes:
    encoder = ArgumentEncoder()
    header = {
        "op": "call",
        "name": name,
        "args": [encoder.value(value) for value in args],
        "kwargs": {key: encoder.value(value) for key, value in kwargs.items()},
        "keep": keep,
    }
    encoder.seal()
    return wire.pack(header, encoder.storages)


class _Crew:
    """The workers of one call, for the conductor. What comes from them is checked here."""

    def __init__(self, name: str, student: RemoteStudent, processes: Sequence[RankProcess]) -> None:
        self._name = name
        self._student = student
        self._processes = processes
        self._most = most_bytes(len(processes))
        self.importing = False

    def request(self, rank: int, frame: bytes) -> None:
        """Tells a rank what to do. Where nobody reads that, its next message is that it is gone."""
        with contextlib.suppress(wire.Disconnected):
            wire.send(self._processes[rank].connection, frame)

    def answer(self, rank: int, reply: Array | ValueError) -> None:
        """Answers a rank that waits in a collective."""
        self.request(rank, reply_frame(reply))

    def messages(self, ranks: Collection[int], doing: Doing) -> Iterator[tuple[int, Message]]:
        """What these ranks say next, as it comes."""
        left = {self._processes[rank].connection: rank for rank in ranks}
        while left:
            ready = select.select(list(left), [], [], _TELL_AFTER)[0]
            if not ready:
                if not self.importing:
                    self._student.doing(doing(left.values()))
                ready = select.select(list(left), [], [])[0]
            for connection in ready:
                rank = left.pop(connection)
                yield rank, self._message(rank)

    def _message(self, rank: int) -> Message:
        process = self._processes[rank]
        try:
            return self._checked(wire.receive(process.connection, self._most), rank)
        except wire.Disconnected:
            text = f"the student's process ended in {self._name}"
            return Raised(WorkerGone(text, pid=process.pid))
        except wire.ProtocolError as bad:
            text = f"during {self._name}, the student's process sent what is no answer: {bad}"
            return Raised(Crashed(text))

    def _checked(self, message: wire.Message, rank: int) -> Message:
        kind = message.header.get("op")
        if kind == "collective" and not self.importing:
            return checked_collective(message, rank, len(self._processes), self._student.frames_of)
        if kind == "returned":
            return Returned(message.value(message.header.get("value")))
        if kind == "raised":
            return Raised(self._student.problem_of(message.header))
        raise wire.ProtocolError(f"unknown message {str(kind)[:20]!r}")
