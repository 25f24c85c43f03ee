"""Profiles for people: a table of traffic and an annotated source listing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mini_triton.finding import in_words
from mini_triton.groups import grouped
from mini_triton.hardware.display import efficiency, hardware_tables, wasteful
from mini_triton.host import HostOp
from mini_triton.page.source import Line, listing

if TYPE_CHECKING:
    from mini_triton.launch import Traffic
    from mini_triton.profiler import Profile


def _cells(*counts: int) -> list[str]:
    return [f"{count:,}" if count else "–" for count in counts]


def traffic_table(profile: Profile) -> Table:
    """Launches by tensor, then host operations, then totals.

    Elements and bytes; with a modelled GPU, bytes and unique bytes.
    """
    modelled = any(launch.hardware for launch in profile.launches)
    table = Table(title="Memory traffic", title_justify="left")
    table.add_column(Text("kernel [grid]"), overflow="fold")
    table.add_column("tensor")
    bytes_moved = ["loaded B", "stored B"]
    unique = ["unique\nloaded B", "unique\nstored B"]
    for heading in bytes_moved + unique if modelled else ["loaded", "stored", *bytes_moved]:
        table.add_column(heading, justify="right")

    def counts(of: Traffic | HostOp, unique: tuple[int, int] = (0, 0)) -> list[str]:
        if modelled:
            return _cells(of.loaded_bytes, of.stored_bytes, *unique)
        return _cells(of.loaded, of.stored, of.loaded_bytes, of.stored_bytes)

    for launch in profile.launches:
        label = f"{launch.kernel} {list(launch.grid)}"
        tensors = launch.hardware.tensors if launch.hardware else {}
        for name, traffic in launch.tensors.items():
            found = tensors.get(name)
            touched = (found.unique_loaded_bytes, found.unique_stored_bytes) if found else (0, 0)
            table.add_row(Text(label), Text(name), *counts(traffic, touched))
            label = ""
        table.add_section()
    for op in profile.host:
        table.add_row(Text("host"), Text(op.name), *counts(op))
    table.add_section()
    all_unique = (
        sum(launch.hardware.unique_loaded_bytes for launch in profile.launches if launch.hardware),
        sum(launch.hardware.unique_stored_bytes for launch in profile.launches if launch.hardware),
    )
    table.add_row("all kernels", "", *counts(profile.total, all_unique), style="bold")
    if profile.host:
        elements = (sum(o.loaded for o in profile.host), sum(o.stored for o in profile.host))
        moved = (profile.host_loaded_bytes, profile.host_stored_bytes)
        every = HostOp("", *elements, *moved)
        table.add_row("all host operations", "", *counts(every))
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
