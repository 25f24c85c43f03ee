"""Which TTIR operations there are, and who executes each.

A *pure* handler maps operand values to result values; it never sees programs or memory. A *lazy*
handler does the same on index formulas, where it can. A *framed* handler gets the frame. What is
*over* computes lane by lane as the pure handler does, and can write to a tensor `out`, which may be
one of its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]

PURE: dict[str, Handler] = {}
LAZY: dict[str, Handler] = {}
FRAMED: dict[str, Handler] = {}
OVER: dict[str, Handler] = {}


def _registers_in(
    table: dict[str, Handler], names: tuple[str, ...]
) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for name in names:
            table[name] = handler
        return handler

    return register


def pure(*names: str) -> Callable[[Handler], Handler]:
    """Registers `handler(op, *values) -> value | tuple of values`; integers come as lanes."""
    return _registers_in(PURE, names)


def lazy(*names: str) -> Callable[[Handler], Handler]:
    """Registers `handler(op, *values) -> value | None`; None leaves the operation to `pure`."""
    return _registers_in(LAZY, names)


def framed(*names: str) -> Callable[[Handler], Handler]:
    """Registers `handler(frame, op) -> value | tuple of values | None`."""
    return _registers_in(FRAMED, names)
