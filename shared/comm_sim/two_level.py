"""Hierarchical all-reduce: most of the bytes stay in the nodes, where links are fast.

With g GPUs in each of m nodes: a ring reduce-scatter in every node, then g rings across the nodes
at once, each all-reducing one block of S/g bytes, and a ring all-gather in every node. On a torus
with its rows as nodes it is the all-reduce of TPUs, axis by axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from comm_sim.arrays import Array, check_summands
from comm_sim.rings import all_reduce_ring, allgather_ring, reduce_scatter_ring

if TYPE_CHECKING:
    from comm_sim.comm import Comm


def all_reduce_hierarchical(
    comm: Comm, arrays: Sequence[Array], label: str = "all-reduce"
) -> list[Array]:
    """2(g−1)α₁ + 2(g−1)/g·S/B₁ + 2(m−1)α₂ + 2(m−1)/m·S/(gB₂).

    Nodes are those of `comm.topology`; on one that has none (m = 1) this is a ring.

    Args:
        comm: the ranks; as many of them in every node that has any.
        arrays: one 1-D array a rank, all of one length and dtype.
        label: for the log.

    Returns:
        The sum, at each rank.

    Raises:
        ValueError: the arrays do not fit, or nodes have different numbers of ranks.
    """
    check_summands(comm.n, arrays)
    nodes = _nodes(comm)
    result: dict[int, Array] = {}
    with comm.collective("all_reduce", label):
        pieces: dict[int, Array] = {}
        for node in nodes:
            local, owner = reduce_scatter_ring(comm.group(node), [arrays[r] for r in node])
            pieces.update(zip(node, local, strict=True))
        for peers in zip(*nodes, strict=True):
            summed = all_reduce_ring(comm.group(peers), [pieces[r] for r in peers], "across nodes")
            pieces.update(zip(peers, summed, strict=True))
        for node in nodes:
            gathered = allgather_ring(comm.group(node), [pieces[r] for r in node], owner)
            result.update(zip(node, gathered, strict=True))
    return [result[r] for r in range(comm.n)]


def _nodes(comm: Comm) -> list[list[int]]:
    """The ranks of each node, in rank order."""
    here = [
        [rank for rank, device in enumerate(comm.devices) if device in node]
        for node in comm.topology.nodes
    ]
    nodes = [node for node in here if node]
    if len({len(node) for node in nodes}) > 1:
        raise ValueError(
            f"the nodes have {[len(node) for node in nodes]} ranks; a hierarchical all-reduce "
            "needs as many in each"
        )
    return nodes
