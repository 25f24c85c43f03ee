"""Trees and chains: reduce to one rank, and broadcast from one.

In a binomial tree all ranks that have something pass it on in every round, so that ⌈lg n⌉ rounds
are enough; each sends the whole array. Cut into chunks, an array can instead run down a chain of
ranks, all links of which are busy at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from comm_sim.arrays import Array, check_pieces, check_summands, cut

if TYPE_CHECKING:
    from comm_sim.comm import Comm


def reduce_tree(comm: Comm, arrays: Sequence[Array], root: int = 0, label: str = "reduce") -> Array:
    """Sums arrays at one rank, in a binomial tree: ⌈lg n⌉(α + S/B).

    Counted from the root, rank v with lowest set bit d sends all it has summed to rank v − d, in
    the round of distance d = 1, 2, 4, ….

    Args:
        comm: the ranks.
        arrays: one 1-D array a rank, all of one length and dtype.
        root: the rank that gets the sum.
        label: for the log.

    Returns:
        The sum, which is at the root.

    Raises:
        ValueError: the arrays do not fit, or there is no such root.
    """
    n = comm.n
    check_summands(n, arrays)
    order = _from_root(comm, root)
    sums = {v: arrays[order[v]] for v in range(n)}
    with comm.collective("reduce", label):
        distance = 1
        while distance < n:
            senders = range(distance, n, 2 * distance)
            arrived = comm.exchange([(order[v], order[v - distance], sums[v]) for v in senders])
            for v, other in zip(senders, arrived, strict=True):
                sums[v - distance] = np.add(sums[v - distance], other, out=other)
            distance *= 2
    return sums[0].copy() if n == 1 else sums[0]


def broadcast_tree(
    comm: Comm, array: Array, root: int = 0, label: str = "broadcast"
) -> list[Array]:
    """Gives every rank the root's array, in a binomial tree: ⌈lg n⌉(α + S/B).

    Args:
        comm: the ranks.
        array: a 1-D array, which is at the root.
        root: its rank.
        label: for the log.

    Returns:
        The array, at each rank.

    Raises:
        ValueError: it is no 1-D array, or there is no such root.
    """
    n = comm.n
    check_pieces(1, [array], "the root's array")
    order = _from_root(comm, root)
    have = {0: array.copy()}
    with comm.collective("broadcast", label):
        distance = 1 << (n - 1).bit_length()
        while distance > 1:
            distance //= 2
            receivers = range(distance, n, 2 * distance)
            arrived = comm.exchange(
                [(order[v - distance], order[v], have[v - distance]) for v in receivers]
            )
            have.update(zip(receivers, arrived, strict=True))
    return [have[(r - root) % n] for r in range(n)]


def broadcast_pipelined(
    comm: Comm, array: Array, chunks: int, root: int = 0, label: str = "broadcast"
) -> list[Array]:
    """Gives every rank the root's array, in chunks down a chain: (n − 2 + c)(α + S/(cB)).

    While a rank passes a chunk on, the next one arrives. √((n−2)·S/(αB)) chunks are best.

    Args:
        comm: the ranks.
        array: a 1-D array, which is at the root.
        chunks: c, how many; 1 or more.
        root: its rank; the chain runs from there in rank order, and round.
        label: for the log.

    Returns:
        The array, at each rank.

    Raises:
        ValueError: it is no 1-D array, there is no such root, or `chunks` is less than 1.
    """
    n = comm.n
    check_pieces(1, [array], "the root's array")
    if chunks < 1:
        raise ValueError(f"chunks is {chunks}; an array has one chunk or more")
    order = _from_root(comm, root)
    blocks = [array[block] for block in cut(len(array), chunks)]
    have = [list(blocks)] + [[] for _ in range(n - 1)]
    with comm.collective("broadcast", label):
        for step in range(n - 2 + chunks if n > 1 else 0):
            senders = [v for v in range(n - 1) if 0 <= step - v < chunks]
            arrived = comm.exchange([(order[v], order[v + 1], have[v][step - v]) for v in senders])
            for v, chunk in zip(senders, arrived, strict=True):
                have[v + 1].append(chunk)
    return [np.concatenate(have[(r - root) % n]) for r in range(n)]


def all_reduce_tree(comm: Comm, arrays: Sequence[Array], label: str = "all-reduce") -> list[Array]:
    """Reduce to rank 0 and broadcast from there: 2⌈lg n⌉(α + S/B).

    Args:
        comm: the ranks.
        arrays: one 1-D array a rank, all of one length and dtype.
        label: for the log.

    Returns:
        The sum, at each rank.

    Raises:
        ValueError: the arrays do not fit.
    """
    check_summands(comm.n, arrays)
    with comm.collective("all_reduce", label):
        return broadcast_tree(comm, reduce_tree(comm, arrays))


def _from_root(comm: Comm, root: int) -> list[int]:
    """The ranks in order, from the root on and round."""
    if root not in range(comm.n):
        raise ValueError(f"the root is rank {root}: ranks are 0 to {comm.n - 1}")
    return [(root + v) % comm.n for v in range(comm.n)]
