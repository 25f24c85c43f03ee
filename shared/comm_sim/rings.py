"""Ring algorithms: every rank talks to its two neighbours only, and all links are always busy.

P. Patarasuk, X. Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations"
(2009). An all-reduce of S bytes takes 2(n−1) steps of S/n bytes each: no algorithm of messages
between two ranks sends less per rank, and none needs more latencies than this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from comm_sim.arrays import Array, check_pieces, check_summands, cut

if TYPE_CHECKING:
    from comm_sim.comm import Comm


def reduce_scatter_ring(
    comm: Comm, arrays: Sequence[Array], label: str = "reduce-scatter"
) -> tuple[list[Array], list[int]]:
    """Sums arrays, and leaves each rank one block of the sum.

    In step s rank r sends block r − s (mod n), as far as it is summed, to rank r + 1, which adds
    its own. After n − 1 steps rank r has all of block r + 1.

    Args:
        comm: the ranks.
        arrays: one 1-D array a rank, all of one length and dtype. Their n blocks are as equal as
            can be, longer ones first.
        label: for the log.

    Returns:
        (pieces, owner): `pieces[r]` is block `owner[r]` = (r + 1) % n of the sum, at rank r.

    Raises:
        ValueError: the arrays do not fit.
    """
    n = comm.n
    check_summands(n, arrays)
    blocks = cut(len(arrays[0]), n)
    with comm.collective("reduce_scatter_tensor", label):
        partial = [arrays[r][blocks[r]] for r in range(n)]
        for step in range(1, n):
            arrived = comm.exchange([(r, (r + 1) % n, partial[r]) for r in range(n)])
            for src in range(n):
                dst = (src + 1) % n
                own = arrays[dst][blocks[(dst - step) % n]]
                partial[dst] = np.add(arrived[src], own, out=arrived[src])
    return [p.copy() for p in partial] if n == 1 else partial, [(r + 1) % n for r in range(n)]


def allgather_ring(
    comm: Comm,
    flat: Sequence[Array],
    blocks: Mapping[int, int] | Sequence[int],
    label: str = "all-gather",
) -> list[Array]:
    """Gives every rank the blocks of all, one after the other.

    In each of n − 1 steps a rank passes on to the next what came from the one before.

    Args:
        comm: the ranks.
        flat: a 1-D array a rank, of one dtype; lengths may differ.
        blocks: rank → number of the block that it holds, `{0: 0, 1: 1, …}`, or a list of these
            numbers, as `reduce_scatter_ring` returns them.
        label: for the log.

    Returns:
        For each rank the blocks joined in the order of their numbers.

    Raises:
        ValueError: the arrays do not fit, or the numbers are not 0 … n−1, each once.
    """
    n = comm.n
    check_pieces(n, flat)
    numbers = dict(blocks) if isinstance(blocks, Mapping) else dict(enumerate(blocks))
    if sorted(numbers) != list(range(n)) or sorted(numbers.values()) != list(range(n)):
        raise ValueError(f"blocks are {numbers}; each of {n} ranks holds another of {n} blocks")
    with comm.collective("all_gather_into_tensor", label):
        held = [{numbers[r]: flat[r]} for r in range(n)]
        for step in range(n - 1):
            newest = [numbers[(r - step) % n] for r in range(n)]
            arrived = comm.exchange([(r, (r + 1) % n, held[r][newest[r]]) for r in range(n)])
            for src in range(n):
                held[(src + 1) % n][newest[src]] = arrived[src]
    return [np.concatenate([have[number] for number in range(n)]) for have in held]


def all_reduce_ring(comm: Comm, arrays: Sequence[Array], label: str = "all-reduce") -> list[Array]:
    """Reduce-scatter and all-gather: 2(n−1)α + 2(n−1)/n·S/B.

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
        pieces, owner = reduce_scatter_ring(comm, arrays)
        return allgather_ring(comm, pieces, owner)
