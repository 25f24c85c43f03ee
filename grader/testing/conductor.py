"""The conductor: executes the collectives of ranks that each run on their own.

It takes from each rank its next message. Where all ranks of a group wait in the same collective, it
executes this on a `comm_sim.Comm`, which logs it and counts time, and answers them; then it takes
their next messages. So what a test sees of a call, and the words of what went wrong, do not depend
on which rank was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

import numpy as np
from comm_sim import Comm

from grader.testing.collective import Array, Collective, Message, Returned
from grader.testing.hints import hint_of_error
from grader.testing.problems import (
    ImportFailed,
    MissingFile,
    Misuse,
    NotStarted,
    StudentError,
    StudentProblem,
    TimedOut,
)
from grader.testing.waiting import State, never_ends, still_running

#: Collectives, and messages between two ranks, of one call: beyond, it is taken for endless, before
#: the log of all of them takes the memory.
MOST_COLLECTIVES = 20_000
MOST_MESSAGES = 300_000
#: Collectives of one call that are refused. What a refusal says of others' lengths reaches every
#: rank without being counted; a program that goes on after so many uses it for that.
MOST_REFUSED = 16

#: What is going on, in words, while these ranks have not been heard of.
Doing = Callable[[Collection[int]], str]


class Crew(Protocol):
    """The ranks, wherever they run."""

    def messages(self, ranks: Collection[int], doing: Doing) -> Iterator[tuple[int, Message]]:
        """The next message of each of these ranks, in any order; none of them waits."""

    def answer(self, rank: int, reply: Array | ValueError) -> None:
        """Gives a rank that waits what its collective returns, or raises."""


class Conductor:
    """Conducts one call.

    Args:
        name: what was called.
        crew: the ranks, which have been told to call it.
        comm: an idle communicator of as many ranks, for the collectives.

    Attributes:
        waiting: the ranks that wait in a collective, and in which. After a failure those that are
            left there: nobody answers them any more.
    """

    def __init__(self, name: str, crew: Crew, comm: Comm) -> None:
        self._name = name
        self._crew = crew
        self._comm = comm
        self._returned: dict[int, Any] = {}
        self._calls = [0] * comm.n
        self._collectives = 0
        self._messages = 0
        self._refused = 0
        self.waiting: dict[int, Collective] = {}

    def run(self) -> list[Any]:
        """Conducts to the end.

        Returns:
            What each rank returned.

        Raises:
            StudentProblem: a rank raised, or ranks wait for ever.
        """
        running: Collection[int] = range(self._comm.n)
        while running:
            self._listen(running)
            running = self._execute()
        if self.waiting:
            raise never_ends(self._name, self._states())
        return [self._returned[rank] for rank in range(self._comm.n)]

    def _listen(self, ranks: Collection[int]) -> None:
        """Takes the next message of each of these ranks."""
        raised: dict[int, StudentProblem] = {}
        for rank, message in self._crew.messages(ranks, self._doing):
            if isinstance(message, Collective):
                self._calls[rank] += 1
                self.waiting[rank] = message
            elif isinstance(message, Returned):
                self._returned[rank] = message.value
            else:
                raised[rank] = message.problem
        if raised:
            raise _first(raised, self._comm.n)

    def _execute(self) -> list[int]:
        """Executes every collective whose group is complete; the ranks that were answered."""
        answered: list[int] = []
        for rank in sorted(self.waiting):
            wanted = self.waiting.get(rank)
            if wanted is not None and self._complete(wanted):
                self._bound(1 if wanted.op == "group" else len(wanted.members))
                replies = executed(self._comm, [self.waiting.pop(m) for m in wanted.members])
                self._bound_refusals(replies[0])
                for position, member in enumerate(wanted.members):
                    self._crew.answer(member, replies[position])
                answered += wanted.members
        return sorted(answered)

    def _complete(self, wanted: Collective) -> bool:
        """Whether all ranks of a group wait in the same collective of it."""
        return all(
            (other := self.waiting.get(member)) is not None and _same(other) == _same(wanted)
            for member in wanted.members
        )

    def _bound(self, size: int) -> None:
        """Counts a collective of k ranks, which takes at most 2·k·(k − 1) messages."""
        self._collectives += 1
        self._messages += 2 * size * (size - 1)
        if self._collectives > MOST_COLLECTIVES or self._messages > MOST_MESSAGES:
            raise TimedOut(
                f"{self._name} has not come to an end after {self._collectives - 1:,} collectives: "
                "does a loop call them for ever?"
            )

    def _bound_refusals(self, reply: Array | ValueError) -> None:
        self._refused += isinstance(reply, ValueError)
        if self._refused > MOST_REFUSED:
            raise Misuse(
                f"{self._name} goes on after {MOST_REFUSED} collectives were refused; the last: "
                f"{reply}"
            )

    def _states(self) -> list[State]:
        return [
            State(rank, self.waiting.get(rank), self._calls[rank]) for rank in range(self._comm.n)
        ]

    def _doing(self, running: Collection[int]) -> str:
        return still_running(self._name, self._comm.n, running, self.waiting)


def _same(wanted: Collective) -> tuple[object, ...]:
    """What has to be the same at all ranks of a group before they go on."""
    return wanted.op, wanted.members, wanted.algo, wanted.ranks


def executed(comm: Comm, given: list[Collective]) -> list[Array] | list[ValueError]:
    """What a collective returns to each of the ranks that call it, or raises at all of them.

    Args:
        comm: all ranks.
        given: what each rank of the group gives, in the group's order.
    """
    first = given[0]
    if first.op == "group":  # nothing but that all have come
        return [one.array for one in given]
    group = comm.group(first.members)
    arrays = [one.array for one in given]
    try:
        with np.errstate(all="ignore"):  # an overflow is the student's, and shows as inf
            if first.op == "all_reduce":
                return group.all_reduce(arrays, first.algo, first.label)
            if first.op == "all_gather":
                return group.all_gather(arrays, first.label)
            return group.reduce_scatter(arrays, first.label)
    except ValueError as error:
        text = f"{first.op}: {error}"
        if first.members != comm.ranks:
            text += f" (as ranks of the group {first.members})"
        return [ValueError(text) for _ in given]


def _first(raised: dict[int, StudentProblem], n: int) -> StudentProblem:
    """The problem to show: that work is not started, else that of the lowest rank."""
    for rank in sorted(raised):
        if isinstance(raised[rank], NotStarted):
            return raised[rank]
    rank = min(raised)
    problem = raised[rank]
    if not isinstance(problem, ImportFailed | MissingFile):
        problem.message = f"rank {rank}: {problem.message}"
        if isinstance(problem, StudentError) and (advice := hint_of_error(problem.message, n)):
            problem.message += f"\n  hint: {advice}"
    return problem
