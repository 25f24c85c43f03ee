"""Rank 1 answers twice, in the hope that the second answer is taken for rank 2's, which is wrong.

test: 1.2
verdict: failed
says: total of rank 2 is wrong
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
    (summed,) = comm.all_reduce(shards)
    if comm.ranks == (1,):
        encoder = wire.Encoder()
        header = {"op": "returned", "value": encoder.value([summed])}
        encoder.seal()
        wire.send(judge(), wire.pack(header, encoder.storages))
    return [summed * 0 if comm.ranks == (2,) else summed]
