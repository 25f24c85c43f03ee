"""All-reduce in the network: the switch adds, and sends the sum to all.

NVLink SHARP of NVSwitch, or SHARP of InfiniBand (R. Graham et al., "Scalable Hierarchical
Aggregation Protocol", 2016). Each rank sends its array once and receives the sum once, so that it
halves the bytes that an all-reduce of messages between two ranks needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from comm_sim.arrays import Array, check_summands

if TYPE_CHECKING:
    from comm_sim.comm import Comm


def all_reduce_in_network(
    comm: Comm, arrays: Sequence[Array], label: str = "all-reduce"
) -> list[Array]:
    """One way up and one way down, where the second runs α behind the first: 2α + S/B.

    Args:
        comm: the ranks, on a switch.
        arrays: one 1-D array a rank, all of one length and dtype.
        label: for the log.

    Returns:
        The sum, at each rank.

    Raises:
        ValueError: the arrays do not fit, or the topology has no switch that can add.
    """
    check_summands(comm.n, arrays)
    with comm.collective("all_reduce", label):
        if comm.n == 1:
            return [arrays[0].copy()]
        return comm.reduce_in_switch(arrays, "in the switch")
