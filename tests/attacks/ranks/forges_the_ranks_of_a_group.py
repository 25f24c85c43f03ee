"""Rank 0 makes a group of ranks that do not exist.

test: 1.2
verdict: crashed
says: rank 0: during total, the student's process sent what is no answer: a group that is made
"""

import os
import socket

import numpy as np
from spmd import Communicator

from grader.judge import wire


def forged() -> None:
    """Sends a message of its own making."""
    encoder = wire.Encoder()
    header = {
        "op": "collective",
        "collective": "group",
        "members": [0, 1, 2, 3],
        "array": encoder.value(np.empty(0)),
        "algo": "",
        "label": "group",
        "ranks": [0, 99, "x"],
        "frames": [],
    }
    encoder.seal()
    wire.send(judge(), wire.pack(header, encoder.storages))


def judge() -> socket.socket:
    """The wire to the judge."""
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket"):  # noqa: PTH115
                return socket.socket(fileno=os.dup(number))
        except OSError:
            continue
    raise OSError("there is no wire")


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    if comm.ranks == (0,):
        forged()
    return comm.all_reduce(shards)
