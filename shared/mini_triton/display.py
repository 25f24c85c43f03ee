"""Profiles for people: a table of traffic and an annotated source listing."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mini_triton.launch import Traffic
    from mini_triton.profiler import Profile

#: Lines of source shown around the first and last line that moved bytes.
_CONTEXT = 2


def _counts(traffic: Traffic) -> list[str]:
    counts = (traffic.loaded, traffic.stored, traffic.loaded_bytes, traffic.stored_bytes)
    return [f"{count:,}" if count else "–" for count in counts]


def traffic_table(profile: Profile) -> Table:
    """Launches by tensor, then host operations, then totals."""
    table = Table(title="Memory traffic", title_justify="left")
    table.add_column("kernel [grid]", overflow="fold")
    table.add_column("tensor")
    for heading in ("loaded", "stored", "loaded B", "stored B"):
        table.add_column(heading, justify="right")
    for launch in profile.launches:
        label = f"{launch.kernel} {list(launch.grid)}"
        for name, traffic in launch.tensors.items():
            table.add_row(Text(label), Text(name), *_counts(traffic))
            label = ""
        table.add_section()
    for op in profile.host:
        counts = (op.loaded, op.stored, op.loaded_bytes, op.stored_bytes)
        table.add_row(Text("host"), Text(op.name), *(f"{c:,}" if c else "–" for c in counts))
    table.add_section()
    table.add_row("all kernels", "", *_counts(profile.total), style="bold")
    if profile.host:
        host_elements = (sum(o.loaded for o in profile.host), sum(o.stored for o in profile.host))
        host_bytes = (profile.host_loaded_bytes, profile.host_stored_bytes)
        table.add_row("all host operations", "", *(f"{c:,}" for c in host_elements + host_bytes))
    return table


def annotated_source(profile: Profile) -> RenderableType:
    """Each file from the first line that moved bytes to the last: loaded, stored, line, source."""
    by_file: dict[str, dict[int, Traffic]] = {}
    for (file, line), traffic in profile.lines.items():
        by_file.setdefault(file, {})[line] = traffic
    listings = [_listing(file, lines) for file, lines in sorted(by_file.items())]
    return Group(*listings) if listings else Text("no kernel moved any byte")


def _listing(file: str, lines: dict[int, Traffic]) -> RenderableType:
    table = Table(title=file or "unknown source", title_justify="left", box=None, pad_edge=False)
    table.add_column("loaded B", justify="right")
    table.add_column("stored B", justify="right")
    table.add_column("line", justify="right", style="dim")
    table.add_column("source", overflow="fold")
    source = linecache.getlines(file)
    first = max(1, min(lines) - _CONTEXT)
    last = min(max(len(source), max(lines)), max(lines) + _CONTEXT)
    for number in range(first, last + 1):
        traffic = lines.get(number)
        loaded = f"{traffic.loaded_bytes:,}" if traffic and traffic.loaded_bytes else ""
        stored = f"{traffic.stored_bytes:,}" if traffic and traffic.stored_bytes else ""
        text = source[number - 1].rstrip() if number <= len(source) else ""
        style = "bold" if traffic else ""
        table.add_row(loaded, stored, str(number), Text(text), style=style)
    return table
