"""Gathers without sending: lengths that do not fit are refused at all ranks, in words that name
them, and so one rank's numbers reach another, 16 bits at a time.

test: 1.3
verdict: failed
says: all_gather goes on after 16 collectives were refused
"""

import re
from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def whisper(pair: Communicator, words: np.ndarray | None, count: int) -> np.ndarray:
    """16-bit words from rank 0 of a pair to rank 1; nothing is sent."""
    heard = np.zeros(count, dtype=np.uint16)
    for i in range(count):
        length = 1 if words is None else 2 + int(words[i])
        try:
            pair.all_reduce([np.zeros(length, dtype=np.int8)])
        except ValueError as refused:
            heard[i] = int(re.search(r"that of rank 0 (\d+)", str(refused))[1]) - 2
    return heard


def all_gather(comm: Communicator, shards: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    (mine,), (me,) = shards, comm.ranks
    words = np.ascontiguousarray(mine).reshape(-1).view(np.uint16)
    parts = {me: mine}
    for sender in range(comm.n):
        for receiver in range(comm.n):
            if sender == receiver:
                continue
            pair = comm.group((sender, receiver))
            if not pair.ranks:
                continue
            heard = whisper(pair, words if me == sender else None, len(words))
            if me == receiver:
                parts[sender] = heard.view(mine.dtype).reshape(mine.shape)
    comm.all_gather([np.zeros(0)])
    return [np.concatenate([parts[r] for r in range(comm.n)], axis=axis)]
