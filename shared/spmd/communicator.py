"""`Communicator`: what a program of ranks may ask of what connects them.

Lists have one entry for each rank that **this process** holds, which are `comm.ranks`; JAX calls
them addressable shards. A simulation holds all n in one process, a real rank only itself. A program
that combines entries of one list with each other, or counts them to know n, is right only where
all ranks are in one process; one that leaves that to the communicator is right everywhere:

    partial = [a @ b for a, b in zip(A_sh, B_sh, strict=True)]     # what this process holds
    summed = comm.all_reduce([p.ravel() for p in partial])         # as many
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

#: A 1-D numpy array, or a 1-D torch tensor where the implementation takes them.
Array = Any


class Communicator(Protocol):
    """n ranks, 0 … n−1, some of which this process holds, and their collectives.

    A collective is called by all processes that hold ranks of the communicator, in the same order
    and with the same arguments but for the arrays. What it returns is new memory: nothing that was
    given is changed, and nothing returned is shared. With n = 1 nothing is sent.

    Labels are for logs. The operations are named there as torch's `CommDebugMode` names them:
    "all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor".
    """

    @property
    def n(self) -> int:
        """How many ranks, wherever they are."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that this process holds, ascending."""

    def all_reduce(
        self, arrays: Sequence[Array], algo: str = "ring", label: str = "all-reduce"
    ) -> list[Array]:
        """Sums the arrays of all ranks; each rank gets the sum.

        Args:
            arrays: for each rank held a 1-D array (length,), of one length and dtype at all ranks.
            algo: how, a key of `comm_sim.ALLREDUCE_ALGOS`; real ranks may leave it to their
                backend.
            label: for the log.

        Returns:
            The sum (length,) for each rank held, of the same dtype; bitwise equal at all ranks.
            In which order it was added depends on the algorithm.

        Raises:
            ValueError: arrays do not fit each other or the ranks held; the message names rank,
                lengths and dtypes. Nothing was sent then.
        """

    def all_gather(self, arrays: Sequence[Array], label: str = "all-gather") -> list[Array]:
        """Joins the arrays of all ranks, in rank order; each rank gets all.

        Args:
            arrays: for each rank held a 1-D array of one dtype at all ranks; lengths may differ.
            label: for the log.

        Returns:
            The joined array, as long as all arrays together, for each rank held.

        Raises:
            ValueError: as `all_reduce`.
        """

    def reduce_scatter(self, arrays: Sequence[Array], label: str = "reduce-scatter") -> list[Array]:
        """Sums the arrays of all ranks; rank r gets block r of n equal blocks of the sum.

        As torch's `reduce_scatter_tensor`.

        Args:
            arrays: for each rank held a 1-D array (length,), of one length and dtype at all ranks;
                the length is a multiple of n.
            label: for the log.

        Returns:
            Its block (length / n,) of the sum for each rank held, of the same dtype.

        Raises:
            ValueError: as `all_reduce`, or the length is no multiple of n.
        """

    def group(self, ranks: Sequence[int]) -> Communicator:
        """A communicator of some of these ranks, which are 0 … k−1 in it, in this order.

        Called by all processes, in the same order and with the same ranks, like a collective: real
        ranks prepare a group together, members or not. A program need not ask whether it is in it.

        Args:
            ranks: ranks of this communicator.

        Returns:
            The group. Its `ranks` are those of its own numbers that this process holds. Where it
            holds none they are (), and collectives take [], return [] and send nothing; so does
            what is a group of it.

        Raises:
            ValueError: no ranks, one that does not exist, or one twice.
        """
