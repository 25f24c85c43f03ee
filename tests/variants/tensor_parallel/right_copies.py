"""Returns arrays that own their memory and lie in it row by row, never views."""

from collections.abc import Sequence

import numpy as np
from spmd import Communicator


def shard(x: np.ndarray, axis: int, n: int) -> list[np.ndarray]:
    length = x.shape[axis]
    if n < 1 or length % n:
        raise ValueError(f"axis {axis} has length {length}; it cannot be cut into {n} equal parts")
    rows = length // n
    return [np.take(x, np.arange(r * rows, (r + 1) * rows), axis) for r in range(n)]


def unshard(shards: Sequence[np.ndarray], axis: int) -> np.ndarray:
    shape = list(shards[0].shape)
    shape[axis] = sum(part.shape[axis] for part in shards)
    whole = np.empty(shape, dtype=shards[0].dtype)
    front, at = np.moveaxis(whole, axis, 0), 0
    for part in shards:
        front[at : at + part.shape[axis]] = np.moveaxis(part, axis, 0)
        at += part.shape[axis]
    return whole


def all_gather(comm: Communicator, shards: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    gathered = comm.all_gather([np.swapaxes(x, 0, axis).flatten() for x in shards])
    wholes = []
    for flat, x in zip(gathered, shards, strict=True):
        front = np.swapaxes(x, 0, axis)
        whole = flat.reshape(comm.n * len(front), *front.shape[1:])
        wholes.append(np.array(np.swapaxes(whole, 0, axis), order="C"))
    return wholes
