"""Words for ranks that wait: while one still runs, and when nothing can end it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from grader.testing.collective import Collective
from grader.testing.problems import Misuse

#: Of the lines that wait, so many are shown, the innermost: the call and what it was called by.
_FRAMES = 2

_RULE = "all ranks of a group have to call the same collectives in the same order"
_RULE_OF_GROUPS = "all ranks have to call group with the same ranks, whether they are in it or not"


@dataclass(frozen=True)
class State:
    """Where a rank is.

    Attributes:
        rank: the rank.
        waits: the collective that it waits in; None if it has returned.
        calls: the collectives that it has called so far.
    """

    rank: int
    waits: Collective | None
    calls: int


def never_ends(name: str, states: Sequence[State]) -> Misuse:
    """Ranks wait in collectives that others of their group do not call.

    Args:
        name: what was called.
        states: of all ranks, in order.
    """
    everyone = tuple(state.rank for state in states)
    groups: dict[str, list[State]] = {}
    for state in states:
        groups.setdefault(_where(name, state, everyone), []).append(state)
    parts = []
    for where, together in groups.items():
        verb = "" if together[0].waits is None else "waits " if len(together) == 1 else "wait "
        if together[0].waits is None:
            where = ("has " if len(together) == 1 else "have ") + where
        parts.append(f"{listed([state.rank for state in together])} {verb}{where}")
    making = any(state.waits is not None and state.waits.op == "group" for state in states)
    lines = [f"{', '.join(parts)}: {_RULE_OF_GROUPS if making else _RULE}"]
    for together in groups.values():
        waits = together[0].waits
        if waits is not None and waits.frames:
            lines.append(f"  {listed([state.rank for state in together])} at")
            for frame in waits.frames[-_FRAMES:]:
                lines += [f"    {line}" for line in str(frame).split("\n")]
    return Misuse("\n".join(lines))


def _where(name: str, state: State, everyone: tuple[int, ...]) -> str:
    waits = state.waits
    if waits is None:
        return f"returned from {name}"
    if waits.op == "group":
        return f"in group({list(waits.ranks)}) (call {state.calls})"
    text = f"in {waits.op} of {len(waits.array):,} {waits.array.dtype}"
    if waits.algo and waits.algo != "ring":
        text += f" by {waits.algo!r}"
    if waits.members != everyone:
        text += f" in the group {waits.members}"
    return f"{text} (call {state.calls})"


def still_running(
    name: str, n: int, running: Collection[int], waiting: Mapping[int, Collective]
) -> str:
    """What is going on: `in tp_forward on rank 1, while ranks 0 and 2 wait in all_reduce`."""
    text = f"in {name}"
    if len(running) < n:
        text += f" on {listed(sorted(running))}"
    if waiting:
        ranks = sorted(waiting)
        ops = sorted({waits.op for waits in waiting.values()})
        verb = "waits" if len(ranks) == 1 else "wait"
        text += f", while {listed(ranks)} {verb} in {' and '.join(ops)}"
    return text


def listed(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 0 and 2`, `ranks 0, 1 and 2`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
