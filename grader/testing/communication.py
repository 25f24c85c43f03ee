"""Judges what the ranks of a call sent, and which collectives they called."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from grader.testing.budget import Budget
from grader.testing.evidence import TrafficRow
from grader.testing.ranks import RanksCall

#: A failure names this many labels, those of the most bytes.
_LABELS_NAMED = 6


@dataclass(frozen=True)
class SentCheck:
    """The outcome: a row for the report and, over budget, the text that says what was sent."""

    row: TrafficRow
    failure: str | None


def check_counts(call: RanksCall, counts: Mapping[str, int]) -> str | None:
    """Compares the collectives that each rank called with those wanted, exactly.

    Args:
        call: the call.
        counts: how often each is to be called, by torch's names; others not at all.

    Returns:
        What is wrong, at the lowest rank where something is; None if nothing is.
    """
    wanted = Counter(dict(counts))
    for rank in range(call.comm.n):
        found = call.comm.get_comm_counts(rank)
        wrong = [op for op in sorted(found.keys() | wanted.keys()) if found[op] != wanted[op]]
        if wrong:
            parts = [f"{op} {_times(found[op])} ({wanted[op]} expected)" for op in wrong]
            return f"{call.name} calls {', '.join(parts)} on rank {rank}"
    return None


def check_sent(call: RanksCall, budget: Budget) -> SentCheck:
    """Compares the bytes that each rank sends with a budget.

    Args:
        call: the call.
        budget: the most bytes that a rank may send.
    """
    sent = [_whole(call.comm.sent(rank)) for rank in range(call.comm.n)]
    worst = max(range(call.comm.n), key=lambda rank: (sent[rank], -rank))
    labels: dict[str, float] = {}
    for message in call.comm.messages:
        if message.src == call.comm.devices[worst]:
            labels[message.label] = labels.get(message.label, 0.0) + message.bytes
    largest = sorted(labels.items(), key=lambda item: -item[1])
    row = TrafficRow(
        name=f"{call.name}, rank {worst} of {call.comm.n}",
        which="sent",
        bytes=sent[worst],
        budget=budget.bytes,
        formula=str(budget),
        tensors={_printable(label): _whole(amount) for label, amount in largest if amount},
        lines=(),
        ok=sent[worst] <= budget.bytes,
    )
    return SentCheck(row, None if row.ok else _words(row, call, worst, budget))


def _words(row: TrafficRow, call: RanksCall, worst: int, budget: Budget) -> str:
    ratio = f" ({row.bytes / budget.bytes:.2f}×)" if budget.bytes else ""
    out = [
        f"{call.name} sends {row.bytes:,} B from rank {worst}, over the budget of {budget}{ratio}"
    ]
    shown = list(row.tensors.items())[:_LABELS_NAMED]
    width = max((len(f"{amount:,}") for _, amount in shown), default=0)
    out += [f"  {amount:>{width},} B  {label}" for label, amount in shown]
    if rest := list(row.tensors.values())[_LABELS_NAMED:]:
        out.append(f"  {sum(rest):>{width},} B  {len(rest)} others")
    return "\n".join(out)


def _times(count: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _whole(nbytes: float) -> int:
    """Bytes that a `byte_scale` may have left a fraction of, rounded up."""
    return math.ceil(round(nbytes, 6))


def _printable(label: str) -> str:
    """A label, which student code gives, fit to be shown."""
    return "".join(c if c.isprintable() else "�" for c in label) or "(no label)"
