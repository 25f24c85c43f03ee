"""Processes for ranks, as the judge's child asks the supervisor for them.

The supervisor owns the zygote, which forks them. The child sends a request over a socket of the
two, and gets the judge's ends of the new workers' wires with the answer.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from grader.testing.collective import MOST_RANKS

LONGEST_MESSAGE = 1 << 16


@dataclass(frozen=True)
class RankProcess:
    """A worker that holds one rank.

    Attributes:
        pid: its process id.
        connection: the judge's end of its wire.
    """

    pid: int
    connection: socket.socket


class Staff:
    """In the judge's child: gets workers for ranks, and lets them go.

    Args:
        control: the socket to the supervisor, of messages (SOCK_SEQPACKET).
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def hire(self, n: int) -> list[RankProcess]:
        """Has n workers forked, for ranks 0 to n − 1.

        Raises:
            RuntimeError: the supervisor could not; the text says why.
        """
        self._control.send(json.dumps({"hire": n}).encode())
        data, descriptors, _, _ = socket.recv_fds(self._control, LONGEST_MESSAGE, MOST_RANKS)
        answer = json.loads(data) if data else {"error": "the supervisor is gone"}
        connections = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if "error" in answer or len(connections) != n:
            for connection in connections:
                connection.close()
            raise RuntimeError(f"no processes for {n} ranks: {answer.get('error')}")
        return [RankProcess(*both) for both in zip(answer["pids"], connections, strict=True)]

    def dismiss(self, processes: Sequence[RankProcess]) -> None:
        """Has workers ended, wherever they are; returns when they are gone."""
        for process in processes:
            process.connection.close()
        with contextlib.suppress(OSError):  # else the supervisor ends the test, and them with it
            self._control.send(json.dumps({"dismiss": [p.pid for p in processes]}).encode())
            self._control.recv(LONGEST_MESSAGE)
