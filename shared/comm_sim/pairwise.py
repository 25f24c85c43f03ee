"""All-to-all: every rank has something for every other one, as tokens for experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from comm_sim.arrays import Array, check_pieces

if TYPE_CHECKING:
    from comm_sim.comm import Comm


def all_to_all(
    comm: Comm, blocks: Sequence[Sequence[Array]], label: str = "all-to-all"
) -> list[list[Array]]:
    """Sends block c of rank r to rank c, in n − 1 steps: (n−1)α + (n−1)/n·S/B.

    In step s = 1 … n − 1 rank r sends to rank r + s and receives from rank r − s, so that no port
    has two messages at once (pairwise exchange, as in MPICH). The formula is for equal blocks, with
    S what a rank holds.

    Args:
        comm: the ranks.
        blocks: for each rank a list of n 1-D arrays, `blocks[r][c]` for rank c; of one dtype,
            lengths may differ. Cut an array with `np.array_split(x, n)`.
        label: for the log.

    Returns:
        For each rank a list of what it got, from ranks 0, 1, …: `result[c][r]` is `blocks[r][c]`.

    Raises:
        ValueError: a rank has not n blocks, or they do not fit.
    """
    n = comm.n
    if len(blocks) != n:
        raise ValueError(f"{n} ranks take part, but there are {len(blocks)} lists of blocks")
    for rank, own in enumerate(blocks):
        if len(own) != n:
            raise ValueError(f"rank {rank} has {len(own)} blocks; it needs one for each of {n}")
        check_pieces(n, own, f"rank {rank}'s block for rank {{}}")
    check_pieces(n, [own[0] for own in blocks], "the block of rank {} for rank 0")
    with comm.collective("all_to_all_single", label):
        got = [{r: blocks[r][r].copy()} for r in range(n)]
        for step in range(1, n):
            pairs = [(r, (r + step) % n) for r in range(n)]
            arrived = comm.exchange([(src, dst, blocks[src][dst]) for src, dst in pairs])
            for (src, dst), block in zip(pairs, arrived, strict=True):
                got[dst][src] = block
    return [[have[src] for src in range(n)] for have in got]
