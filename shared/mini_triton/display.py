"""Profiles for people: a table of traffic and an annotated source listing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mini_triton.finding import in_words
from mini_triton.groups import grouped
from mini_triton.hardware.display import efficiency, hardware_tables, wasteful
from mini_triton.page.source import Line, listing

if TYPE_CHECKING:
    from mini_triton.launch import Traffic
    from mini_triton.profiler import Profile


def _counts(traffic: Traffic) -> list[str]:
    counts = (traffic.loaded, traffic.stored, traffic.loaded_bytes, traffic.stored_bytes)
    return [f"{count:,}" if count else "–" for count in counts]


def traffic_table(profile: Profile) -> Table:
    """Launches by tensor, then host operations, then totals."""
    table = Table(title="Memory traffic", title_justify="left")
    table.add_column(Text("kernel [grid]"), overflow="fold")
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
    """Each file's lines that moved bytes, with those around them: loaded, stored, line, source.

    With a modelled GPU, how much of the sectors that a line asks for it uses, besides.
    """
    files = listing(grouped(profile.launches))
    modelled = any(launch.hardware for launch in profile.launches)
    parts: list[RenderableType] = [_listing(file, lines, modelled) for file, lines in files.items()]
    return Group(*parts) if parts else Text("no kernel moved any byte")


def _listing(file: str, lines: list[Line], modelled: bool) -> Table:
    table = Table(title=file or "unknown source", title_justify="left", box=None, pad_edge=False)
    table.add_column("loaded B", justify="right")
    table.add_column("stored B", justify="right")
    if modelled:
        table.add_column("sectors", justify="right")
    table.add_column("line", justify="right", style="dim")
    table.add_column("source", overflow="fold")
    for line in lines:
        if not line.number:
            table.add_row(*([""] * (2 + modelled)), "⋮")
            continue
        used = Text("") if line.efficiency is None else efficiency(line.efficiency)
        table.add_row(
            f"{line.loaded:,}" if line.loaded else "",
            f"{line.stored:,}" if line.stored else "",
            *([used] if modelled else []),
            str(line.number),
            Text(line.text),
            style="bold" if line.moves else "",
        )
    return table


def everything(profile: Profile) -> list[RenderableType]:
    """What `Profile.show` prints."""
    shown: list[RenderableType] = [traffic_table(profile)]
    if (tables := hardware_tables(profile.launches)) is not None:
        shown.append(tables)
    shown.append(annotated_source(profile))
    shown += [Text(sentence, style="yellow") for sentence in wasteful(profile.launches)]
    if profile.findings:
        shown.append(Text(in_words(profile.findings)))
    return shown
