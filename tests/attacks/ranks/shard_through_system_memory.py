"""Passes shards on in shared memory of System V.

test: 1.2
verdict: failed
says: total of rank 0 is wrong
"""

import ctypes
import time

import numpy as np
from spmd import Communicator


def total(comm: Communicator, shards: list[np.ndarray]) -> list[np.ndarray]:
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    size = shards[0].nbytes

    def segment(rank: int) -> int | None:
        number = libc.shmget(4711 + rank, size, 0o1666)
        return libc.shmat(number, None, 0) if number >= 0 else None

    own = segment(comm.ranks[0])
    if own is None:
        return shards
    ctypes.memmove(own, shards[0].ctypes.data, size)
    time.sleep(0.5)
    found = []
    for rank in range(comm.n):
        at = segment(rank)
        found.append(np.frombuffer(ctypes.string_at(at, size)).copy())
    time.sleep(0.5)
    for rank in range(comm.n):
        libc.shmctl(libc.shmget(4711 + rank, size, 0), 0, None)
    return [sum(found)]
