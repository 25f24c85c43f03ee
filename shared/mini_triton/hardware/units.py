"""Times and operations for people, with three digits."""

from __future__ import annotations

from console import fmt_time


def fmt_seconds(seconds: float) -> str:
    """As `console.fmt_time`, with nanoseconds below a microsecond: "875 ns"."""
    return f"{1e9 * seconds:.3g} ns" if seconds < 0.9995e-6 else fmt_time(seconds)


def fmt_operations(operations: float) -> str:
    """ "8.59 G", for a unit to follow."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if operations >= 0.9995 * size:
            return f"{operations / size:.3g} {prefix}"
    return f"{operations:.3g}"
