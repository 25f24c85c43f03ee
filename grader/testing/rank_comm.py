"""`RankComm`: the communicator of one rank, whose collectives someone else executes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from grader.testing.collective import LONGEST_LABEL, Array, Collective, check_given
from grader.testing.explain import frames_of_stack

#: Executes a collective: what this rank gets. It raises the ValueError of arrays that do not fit.
Talk = Callable[[Collective], Array]


class RankComm:
    """An `spmd.Communicator` that holds one rank, or none: a group that the rank is not in.

    Args:
        talk: executes this rank's collectives.
        members: the communicator's ranks, as numbers of the whole.
        rank: this process' rank in the whole.
        folder: the folder of submitted files, whose lines are shown if ranks wait for ever.
        whole: all ranks, who make groups together; None where these are the members.
    """

    def __init__(
        self,
        talk: Talk,
        members: Sequence[int],
        rank: int,
        folder: Path,
        whole: Sequence[int] | None = None,
    ) -> None:
        self._talk = talk
        self._members = tuple(members)
        self._whole = self._members if whole is None else tuple(whole)
        self._rank = rank
        self._folder = folder

    def __repr__(self) -> str:
        return f"<communicator of {self.n} ranks; held here: {self.ranks}>"

    @property
    def n(self) -> int:
        """How many ranks."""
        return len(self._members)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank that this process holds; () in a group that it is not in."""
        return (self._members.index(self._rank),) if self._rank in self._members else ()

    def all_reduce(
        self, arrays: Sequence[Array], algo: str = "ring", label: str = "all-reduce"
    ) -> list[Array]:
        """Sums the arrays of all ranks; see `spmd.Communicator`."""
        return self._collective("all_reduce", arrays, str(algo), label)

    def all_gather(self, arrays: Sequence[Array], label: str = "all-gather") -> list[Array]:
        """Joins the arrays of all ranks; see `spmd.Communicator`."""
        return self._collective("all_gather", arrays, "", label)

    def reduce_scatter(self, arrays: Sequence[Array], label: str = "reduce-scatter") -> list[Array]:
        """Sums the arrays of all ranks and cuts the sum; see `spmd.Communicator`."""
        return self._collective("reduce_scatter", arrays, "", label)

    def group(self, ranks: Sequence[int]) -> RankComm:
        """Some of these ranks, in this order; see `spmd.Communicator`.

        It returns when all ranks of the whole have called it, also for a group of a group: so it
        is where real ranks make process groups. For one rank they make none.
        """
        chosen = []
        for rank in ranks:
            if isinstance(rank, bool) or not hasattr(rank, "__index__"):
                raise ValueError(f"a rank is a whole number, not {rank!r}")
            number = int(rank)
            if not 0 <= number < self.n:
                raise ValueError(f"there is no rank {number}: ranks are 0 to {self.n - 1}")
            chosen.append(self._members[number])
        if not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(f"ranks are {list(ranks)}; a group has one rank or more, each once")
        if len(chosen) > 1:
            frames = frames_of_stack(sys._getframe(1), self._folder)
            ranks = tuple(chosen)
            self._talk(Collective("group", self._whole, np.empty(0), "", "group", frames, ranks))
        return RankComm(self._talk, chosen, self._rank, self._folder, self._whole)

    def _collective(self, op: str, arrays: Sequence[Array], algo: str, label: str) -> list[Array]:
        held = self.ranks
        if len(arrays) != len(held):
            raise ValueError(
                f"{op}: {_counted(len(held))} needed, one for each rank that this process holds "
                f"({', '.join(map(str, held)) or 'none of this group'}); there are {len(arrays)}"
            )
        if not held:
            return []
        given = check_given(arrays[0], held[0])
        frames = frames_of_stack(sys._getframe(2), self._folder)
        wanted = Collective(
            op, self._members, given, algo[:LONGEST_LABEL], str(label)[:LONGEST_LABEL], frames
        )
        return [self._talk(wanted)]


def _counted(count: int) -> str:
    return "1 array is" if count == 1 else f"{count} arrays are"
