"""Rank 0 calls a collective of a group that it is not in, in the name of others.

test: 1.2
verdict: crashed
says: rank 0: during total, the student's process sent what is no answer: a collective is of a group
"""

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
        "members": [0, 1, 2, 3],
        "array": encoder.value(np.ones(12)),
        "algo": "ring",
        "label": "forged",
        "ranks": [],
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


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    if comm.ranks == (0,):
        forged(members=[1, 2])
    return comm.all_reduce(shards)
