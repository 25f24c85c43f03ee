"""Judges the bytes that a call's kernels moved against a budget."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from grader.testing.budget import Budget
from grader.testing.evidence import LineTraffic, TrafficRow
from grader.testing.student import Call

Direction = Literal["loaded", "stored", "moved"]
_VERBS: dict[Direction, str] = {"loaded": "loads", "stored": "stores", "moved": "moves"}
#: A failure names this many of the source lines that move most.
_LINES_NAMED = 3


@dataclass(frozen=True)
class TrafficCheck:
    """The outcome: a row for the report and, over budget, the text that says where it went."""

    row: TrafficRow
    failure: str | None


def check_traffic(
    call: Call, which: Direction, budget: Budget, source: Callable[[str, int], str]
) -> TrafficCheck:
    """Compares what `call` loaded or stored with its budget.

    Args:
        call: the call, with the counts of the device that executed its kernels.
        which: `loaded`, `stored`, or `moved`: both together.
        budget: the most bytes allowed.
        source: gives the text of a submitted file's line.
    """
    tensors: Counter[str] = Counter()
    lines: dict[tuple[str, int], list[int]] = {}
    for record in call.profile.launches:
        for name, traffic in record.tensors.items():
            tensors[name] += traffic.loaded_bytes if which != "stored" else 0
            tensors[name] += traffic.stored_bytes if which != "loaded" else 0
        for (file, line), traffic in record.lines.items():
            moved = lines.setdefault((_printable(file.rpartition("/")[2]), line), [0, 0])
            moved[0] += traffic.loaded_bytes
            moved[1] += traffic.stored_bytes
    count: int = getattr(call.profile, f"{which}_bytes")
    row = TrafficRow(
        name=call.name,
        which=which,
        bytes=count,
        budget=budget.bytes,
        formula=str(budget),
        tensors={name: amount for name, amount in tensors.most_common() if amount},
        lines=tuple(
            LineTraffic(file=file, line=line, loaded=moved[0], stored=moved[1])
            for (file, line), moved in sorted(lines.items())
        ),
        ok=count <= budget.bytes,
    )
    return TrafficCheck(row, None if row.ok else _words(row, which, budget, source))


def _printable(file: str) -> str:
    """A file's name from a kernel's program, which may be forged, fit to be shown."""
    return "".join(c if c.isprintable() else "�" for c in file)


def no_kernel(call: Call) -> str | None:
    """Says so if the call launched no kernel at all: there is nothing to count then."""
    if call.profile.launches:
        return None
    if os.environ.get("TRITON_INTERPRET") == "1":
        return (
            f"{call.name} launched no kernel on the simulator: TRITON_INTERPRET=1 is set, so "
            "Triton's interpreter runs them, and counts nothing; unset it to be graded"
        )
    return (
        f"{call.name} launched no Triton kernel; the work is to be done by a @triton.jit kernel, "
        "launched as kernel[grid](…)"
    )


def _words(
    row: TrafficRow, which: Direction, budget: Budget, source: Callable[[str, int], str]
) -> str:
    ratio = f" ({row.bytes / budget.bytes:.2f}×)" if budget.bytes else ""
    out = [f"{row.name} {_VERBS[which]} {row.bytes:,} B, over the budget of {budget}{ratio}"]
    width = max((len(f"{amount:,}") for amount in row.tensors.values()), default=0)
    out += [f"  {amount:>{width},} B  {name}" for name, amount in row.tensors.items()]
    moving = sorted(row.lines, key=lambda line: -getattr(line, which))
    moving = [line for line in moving if getattr(line, which)][:_LINES_NAMED]
    if moving:
        out.append(f"  most is {which} at")
    for line in moving:
        out.append(
            f"  {getattr(line, which):>{width},} B  {line.file}:{line.line}  "
            f"{source(line.file, line.line)}".rstrip()
        )
    return "\n".join(out)
