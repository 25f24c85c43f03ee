"""Which TTIR operations there are, and who executes each.

A *pure* handler maps operand values to result values; it never sees programs or memory. A *frame*
handler gets the frame and stores its results itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PURE: dict[str, Callable[..., Any]] = {}
FRAME: dict[str, Callable[..., Any]] = {}


def pure(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers `handler(op, *values) -> value | tuple of values` for operations."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            PURE[name] = handler
        return handler

    return register


def framed(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers `handler(frame, op) -> value | tuple of values | None` for operations."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FRAME[name] = handler
        return handler

    return register
