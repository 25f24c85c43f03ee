"""Halving and doubling: ranks talk in pairs at distances 1, 2, 4, …, so that lg n steps are enough.

R. Thakur, R. Rabenseifner, W. Gropp: "Optimization of Collective Communication Operations in
MPICH" (2005). Recursive doubling sends the whole array lg n times, which is best for short ones;
Rabenseifner's algorithm sends no more bytes than a ring. Both want a power of two: other ranks
hand their arrays to a neighbour before, and get the result after.

In recursive doubling all ranks add the same numbers. They add them in the same order, so that even
the bits of a NaN are equal everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from comm_sim.arrays import Array, check_pieces, check_summands

if TYPE_CHECKING:
    from comm_sim.comm import Comm


def reduce_scatter_halving(
    comm: Comm, arrays: Sequence[Array], label: str = "reduce-scatter"
) -> list[Array]:
    """Sums arrays, and leaves each rank one block of the sum, in lg n steps.

    First ranks r and r ± n/2 each send the half that the other one keeps, then r and r ± n/4 half
    of that, …. A part of odd length is cut behind its middle.

    Args:
        comm: the ranks; their number is a power of two.
        arrays: one 1-D array a rank, all of one length and dtype.
        label: for the log.

    Returns:
        Block r of the sum at rank r; joined they are the sum.

    Raises:
        ValueError: the arrays do not fit, or n is no power of two.
    """
    n = _power_of_two(comm)
    check_summands(n, arrays)
    parts = list(arrays)
    with comm.collective("reduce_scatter_tensor", label):
        distance = n // 2
        while distance:
            keeps, sends = [], []
            for r, part in enumerate(parts):
                half = (len(part) + 1) // 2
                halves = part[:half], part[half:]
                keeps.append(halves[1 if r & distance else 0])
                sends.append(halves[0 if r & distance else 1])
            arrived = comm.exchange([(r, r ^ distance, sends[r]) for r in range(n)])
            for r in range(n):
                other = arrived[r ^ distance]
                parts[r] = np.add(keeps[r], other, out=other)
            distance //= 2
    return [part.copy() for part in parts] if n == 1 else parts


def allgather_doubling(
    comm: Comm, pieces: Sequence[Array], label: str = "all-gather"
) -> list[Array]:
    """Gives every rank the blocks of all, in rank order, in lg n steps.

    First ranks r and r ± 1 exchange all they have, then r and r ± 2, ….

    Args:
        comm: the ranks; their number is a power of two.
        pieces: a 1-D array a rank, of one dtype; lengths may differ.
        label: for the log.

    Returns:
        All blocks joined, at each rank.

    Raises:
        ValueError: the arrays do not fit, or n is no power of two.
    """
    n = _power_of_two(comm)
    check_pieces(n, pieces)
    parts = [piece.copy() for piece in pieces]
    with comm.collective("all_gather_into_tensor", label):
        distance = 1
        while distance < n:
            arrived = comm.exchange([(r, r ^ distance, parts[r]) for r in range(n)])
            parts = [
                np.concatenate(
                    [arrived[r ^ distance], parts[r]]
                    if r & distance
                    else [parts[r], arrived[r ^ distance]]
                )
                for r in range(n)
            ]
            distance *= 2
    return parts


def all_reduce_doubling(
    comm: Comm, arrays: Sequence[Array], label: str = "all-reduce"
) -> list[Array]:
    """Recursive doubling: lg n·(α + S/B); ⌊lg n⌋ + 2 steps where n is no power of two.

    In the step of distance d ranks r and r ± d exchange all they have summed so far, and add.

    Args:
        comm: the ranks.
        arrays: one 1-D array a rank, all of one length and dtype.
        label: for the log.

    Returns:
        The sum, at each rank.

    Raises:
        ValueError: the arrays do not fit.
    """

    def double(core: Comm, sums: list[Array]) -> list[Array]:
        distance = 1
        while distance < core.n:
            arrived = core.exchange([(r, r ^ distance, sums[r]) for r in range(core.n)], "doubling")
            for r in range(core.n):
                other = arrived[r ^ distance]
                pair = (other, sums[r]) if r & distance else (sums[r], other)
                sums[r] = np.add(*pair, out=other)
            distance *= 2
        return sums

    return _on_a_power_of_two(comm, arrays, label, double)


def all_reduce_rabenseifner(
    comm: Comm, arrays: Sequence[Array], label: str = "all-reduce"
) -> list[Array]:
    """Recursive halving, then recursive doubling: 2 lg n·α + 2(n−1)/n·S/B.

    Where n is no power of two: that of the next smaller one, and 2(α + S/B).

    Args:
        comm: the ranks.
        arrays: one 1-D array a rank, all of one length and dtype.
        label: for the log.

    Returns:
        The sum, at each rank.

    Raises:
        ValueError: the arrays do not fit.
    """

    def halve_and_double(core: Comm, sums: list[Array]) -> list[Array]:
        return allgather_doubling(core, reduce_scatter_halving(core, sums))

    return _on_a_power_of_two(comm, arrays, label, halve_and_double)


def _on_a_power_of_two(
    comm: Comm,
    arrays: Sequence[Array],
    label: str,
    all_reduce: Callable[[Comm, list[Array]], list[Array]],
) -> list[Array]:
    """All-reduces on the largest power of two p ≤ n.

    Of the first 2(n − p) ranks the even ones hand their arrays to the odd ones before, and get the
    result after.
    """
    n = comm.n
    check_summands(n, arrays)
    extra = n - (1 << (n.bit_length() - 1))
    pairs = [(r, r + 1) for r in range(0, 2 * extra, 2)]
    with comm.collective("all_reduce", label):
        arrived = comm.exchange([(even, odd, arrays[even]) for even, odd in pairs], "fold")
        sums = [
            np.add(other, arrays[odd], out=other)
            for (_, odd), other in zip(pairs, arrived, strict=True)
        ]
        core = [odd for _, odd in pairs] + list(range(2 * extra, n))
        sums = all_reduce(comm.group(core), sums + list(arrays[2 * extra :]))
        result = dict(zip(core, sums, strict=True))
        back = comm.exchange([(odd, even, result[odd]) for even, odd in pairs], "unfold")
        result.update(zip([even for even, _ in pairs], back, strict=True))
    return [result[0].copy()] if n == 1 else [result[r] for r in range(n)]


def _power_of_two(comm: Comm) -> int:
    if comm.n & (comm.n - 1):
        raise ValueError(f"{comm.n} ranks are no power of two; the ring algorithms take any number")
    return comm.n
