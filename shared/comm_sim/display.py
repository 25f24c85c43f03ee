"""The log as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import fmt_bytes, fmt_time, print_header, print_table

from comm_sim.network import SWITCH

if TYPE_CHECKING:
    from comm_sim.comm import Comm


def show(comm: Comm, limit: int | None = 40) -> None:
    """Prints the first `limit` messages, None all; then the time, and how many there were."""
    messages = comm.messages
    shown = messages[:limit]
    print_header(f"{comm.topology.name}: {len(messages):,} messages in {fmt_time(comm.time)}")
    rows = [
        (
            device_name(message.src),
            device_name(message.dst),
            fmt_bytes(message.bytes),
            fmt_time(message.start),
            fmt_time(message.end),
            message.label,
        )
        for message in shown
    ]
    print_table(["from", "to", "bytes", "start", "end", "label"], rows)
    if len(shown) < len(messages):
        print(f"… and {len(messages) - len(shown):,} more: show(limit=None)")


def device_name(device: int) -> str:
    """The number of a device, or "switch"."""
    return "switch" if device == SWITCH else str(device)
