"""Ranks: student code that runs in several processes, each of which holds one rank.

with self.student.ranks(4) as ranks:
    call = ranks.call("tp_forward", [([shard], cfg, tokens, COMM) for shard in shards])
    call.values[2]      # what rank 2 returned
    call.comm           # what was sent
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from comm_sim import NVLINK4, Comm, Topology, switch

from grader.testing.collective import MOST_RANKS
from grader.testing.problems import Crashed, StudentProblem


class _Placeholder:
    def __repr__(self) -> str:
        return "comm"


#: As an argument, also within lists, tuples and dicts: each rank's own communicator.
COMM = _Placeholder()


@dataclass(frozen=True)
class RanksCall:
    """One call of student code on all ranks of a session.

    Attributes:
        name: what was called, e.g. `tp_forward`.
        values: what each rank returned, in rank order; tensors detached.
        comm: log, counts and clock of this call alone, which began on an idle network at time 0.
    """

    name: str
    values: list[Any]
    comm: Comm


class Reference:
    """What stands for something that is kept on a rank.

    Attributes:
        key: its number there.
        path: which element of it.
    """

    def __init__(self, key: int, path: tuple[int | str, ...] = ()) -> None:
        self.key = key
        self.path = path

    def __repr__(self) -> str:
        return "kept" + "".join(f"[{at!r}]" for at in self.path)


class Kept(Reference):
    """What a call returned on each rank, kept there; an argument of later calls on these ranks.

    `kept[0]` and `kept["key"]` stand for elements, on each rank of what is kept there.

    Attributes:
        session: the ranks on which it is kept.
        comm: log, counts and clock of the call.
    """

    def __init__(
        self, session: Ranks, key: int, comm: Comm, path: tuple[int | str, ...] = ()
    ) -> None:
        super().__init__(key, path)
        self.session = session
        self.comm = comm

    def __getitem__(self, at: int | str) -> Kept:
        return Kept(self.session, self.key, self.comm, (*self.path, at))

    def __iter__(self) -> None:
        raise TypeError("what is kept on the ranks cannot be listed here; index it")


class Ranks(ABC):
    """A session of n ranks, each in a process of its own. See `Student.ranks`.

    What a rank's code leaves in its modules, and what is kept, is there in the next call. After a
    failure in which ranks were left waiting they cannot be called again.

    Args:
        n: how many.
        topology: the network that connects them; None is `comm_sim.switch(n, NVLINK4)`.
        byte_scale: what a byte of an array counts for, see `comm_sim.Comm`.

    Attributes:
        n: how many.

    Raises:
        ValueError: n is not 1 to 16, or the topology has another number of devices.
    """

    def __init__(self, n: int, topology: Topology | None, byte_scale: float) -> None:
        if not 1 <= n <= MOST_RANKS:
            raise ValueError(f"n is {n}; 1 to {MOST_RANKS} ranks can be run")
        self.n = n
        self._topology = switch(n, NVLINK4) if topology is None else topology
        if self._topology.n != n:
            raise ValueError(f"{self._topology!r} does not connect {n} ranks")
        self._byte_scale = byte_scale
        self._kept = 0
        self._over = ""

    def call(
        self, name: str, args_of_each_rank: Sequence[Sequence[Any]], /, **kwargs: Any
    ) -> RanksCall:
        """Calls a function on all ranks at once.

        Args:
            name: the function, as in `Student.call`.
            args_of_each_rank: for each rank its positional arguments. `COMM`, also within lists,
                tuples and dicts, is that rank's communicator; a `Kept` what is kept there. Only its
                own arguments get to a rank, and as copies.
            **kwargs: keyword arguments, the same for all ranks.

        Returns:
            The values, and what was sent.

        Raises:
            StudentProblem: what went wrong, on which rank; ranks that wait for each other for ever
                included.
            ValueError: not the arguments of n ranks, or this session is over: the test is at fault.
        """
        values, comm = self._run(name, args_of_each_rank, kwargs, None)
        return RanksCall(name, values, comm)

    def keep(self, name: str, args_of_each_rank: Sequence[Sequence[Any]], /, **kwargs: Any) -> Kept:
        """As `call`, but what the function returns stays on the ranks, whatever it is."""
        self._kept += 1
        _, comm = self._run(name, args_of_each_rank, kwargs, self._kept)
        return Kept(self, self._kept, comm)

    def close(self) -> None:
        """Ends the session."""
        self._over = "they are closed"

    def _run(
        self,
        name: str,
        args: Sequence[Sequence[Any]],
        kwargs: Mapping[str, Any],
        keep: int | None,
    ) -> tuple[list[Any], Comm]:
        if self._over:
            raise ValueError(f"these ranks cannot be called: {self._over}")
        if len(args) != self.n:
            raise ValueError(f"arguments of {len(args)} ranks; there are {self.n}")
        for_each(args, self._check_kept)
        for_each(dict(kwargs), self._check_kept)
        comm = Comm(self._topology, self._byte_scale)
        try:
            return self._conduct(name, args, kwargs, keep, comm), comm
        except StudentProblem as problem:
            if isinstance(problem, Crashed):
                self._over = "one has crashed"
            raise
        except BaseException:
            self._over = "a call was broken off"
            raise

    @abstractmethod
    def _conduct(
        self,
        name: str,
        args: Sequence[Sequence[Any]],
        kwargs: Mapping[str, Any],
        keep: int | None,
        comm: Comm,
    ) -> list[Any]:
        """Calls `name` on all ranks; keeps what it returns under the number `keep`, if given."""

    def _check_kept(self, value: Any) -> Any:
        if isinstance(value, Kept) and value.session is not self:
            raise ValueError(f"{value!r} was kept in another session; its processes are gone")
        return value


def for_each(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of nested lists, tuples and dicts, with each leaf as `change` makes it."""
    if type(value) in (list, tuple):
        return type(value)(for_each(item, change) for item in value)
    if type(value) is dict:
        return {key: for_each(item, change) for key, item in value.items()}
    return change(value)
