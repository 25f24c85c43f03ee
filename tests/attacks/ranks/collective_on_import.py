"""Calls a collective while the file is imported, when nothing is counted.

test: 1.2
verdict: crashed
says: during total, the student's process sent what is no answer: unknown message 'collective'
"""

import contextlib
import os
import socket

import numpy as np
from spmd import Communicator

from grader.judge import wire


def forged(**parts: object) -> None:
    """Sends a collective of its own making."""
    encoder = wire.Encoder()
    header = {
        "op": "collective",
        "collective": "all_reduce",
        "ranks": [],
        "members": [0, 1, 2, 3],
        "array": encoder.value(np.ones(12)),
        "algo": "ring",
        "label": "forged",
        "frames": [],
    }
    encoder.seal()
    wire.send(judge(), wire.pack({**header, **parts}, encoder.storages))


def judge() -> socket.socket:
    """The wire to the judge."""
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket"):  # noqa: PTH115
                return socket.socket(fileno=os.dup(number))
        except OSError:
            continue
    raise OSError("there is no wire")


def early() -> bool:
    """In a rank's process there is a wire; where the file is only read, there is none."""
    with contextlib.suppress(OSError):
        forged()
    return True


SENT = early()


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    return comm.all_reduce(shards)
