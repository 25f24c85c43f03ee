"""Launches on a modelled GPU, for terminals: what they take of it; lines that waste sectors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from console import fmt_bytes
from rich import box
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mini_triton.groups import Group, grouped
from mini_triton.hardware.record import HardwareRecord
from mini_triton.hardware.units import fmt_operations, fmt_seconds
from mini_triton.launch import LaunchRecord

#: Efficiencies below which a line wastes sectors, and wastes many.
_FAIR, _POOR = 0.9, 0.6


def hardware_tables(launches: Iterable[LaunchRecord]) -> RenderableType | None:
    """A row for each sort of launch that was modelled: traffic and time; its place on an SM."""
    modelled = [
        (group, group.launch.hardware)
        for group in grouped(launches)
        if group.launch.hardware is not None
    ]
    if not modelled:
        return None
    gpus = " and ".join(sorted({hardware.gpu for _, hardware in modelled}))
    parts: list[RenderableType] = [_traffic(gpus, modelled), _resources(modelled)]
    for group, hardware in modelled:
        for text in (hardware.resources.error, *hardware.notes):
            if text:
                parts.append(Text(f"{group.label}: {text}", style="red"))
    return Lines(*parts)


def _table(title: str) -> Table:
    """Narrow enough for names of kernels beside eight columns of numbers."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(Text("kernel [grid]"), overflow="fold")
    return table


def _label(group: Group) -> Text:
    return Text(group.label + (f" × {group.times}" if group.times > 1 else ""))


def _traffic(gpus: str, modelled: list[tuple[Group, HardwareRecord]]) -> Table:
    table = _table(f"On {gpus}")
    for heading in ("unique", "asked\nof L1", "asked\nof L2", "DRAM", "sectors\nused", "FLOP"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("at\nleast", justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    for group, hardware in modelled:
        table.add_row(
            _label(group),
            fmt_bytes(hardware.unique_loaded_bytes + hardware.unique_stored_bytes),
            fmt_bytes(32 * hardware.sectors()),
            fmt_bytes(32 * hardware.l2_sectors()),
            fmt_bytes(hardware.dram_bytes),
            efficiency(hardware.efficiency),
            fmt_operations(hardware.flops) if hardware.flops else "–",
            fmt_seconds(hardware.time) if hardware.fits else "–",
            hardware.bound if hardware.fits else Text("does not fit", style="red"),
        )
    if sum(group.times for group, _ in modelled) > 1:
        table.add_section()
        table.add_row(
            "all modelled launches",
            *("", "", ""),
            fmt_bytes(sum(h.dram_bytes * group.times for group, h in modelled)),
            "",
            fmt_operations(sum(h.flops * group.times for group, h in modelled)),
            fmt_seconds(sum(h.time * group.times for group, h in modelled))
            if all(h.fits for _, h in modelled)
            else "–",
            "",
            style="bold",
        )
    return table


def _resources(modelled: list[tuple[Group, HardwareRecord]]) -> Table:
    table = _table("On a multiprocessor")
    for heading in ("warps", "regs", "spilled", "shared B", "programs", "occupancy"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("limited by", no_wrap=True)
    for group, hardware in modelled:
        r = hardware.resources
        known = bool(r.registers)
        table.add_row(
            _label(group),
            str(r.num_warps),
            str(r.registers) if known else "?",
            Text(str(r.spills), style="red" if r.spills else "") if known else "?",
            f"{r.shared:,}" if known else "?",
            str(r.programs),
            f"{r.occupancy:.0%}",
            r.limited_by,
        )
    return table


def efficiency(share: float) -> Text:
    """A share of sectors that is used; coloured where much is not."""
    style = "red" if share < _POOR else "yellow" if share < _FAIR else ""
    return Text("100%" if share >= 1 else f"{min(99, round(100 * share))}%", style=style)


def wasteful(launches: Iterable[LaunchRecord]) -> list[str]:
    """A sentence for each access, line by line, that asks for many more sectors than it uses."""
    found: dict[str, None] = {}
    for launch in launches:
        for access in launch.hardware.accesses if launch.hardware else ():
            if access.efficiency < _FAIR:
                found[
                    f"{PurePath(access.file).name}:{access.line} asks for {access.sectors:,} "
                    f"sectors of {access.tensor} where {access.ideal:,} would do "
                    f"({access.instruction}, {access.width} B a thread)"
                ] = None
    return list(found)
