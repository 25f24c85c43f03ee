"""Renders the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

import jinja2
from console import fmt_bytes

from mini_triton.groups import MOST_SHOWN, Group, grouped
from mini_triton.hardware.gpu import GPUS
from mini_triton.hardware.units import fmt_operations, fmt_seconds
from mini_triton.host import HostOp
from mini_triton.page.maps import pictures
from mini_triton.page.roofline import Plot, plot
from mini_triton.page.source import listing

if TYPE_CHECKING:
    from mini_triton.profiler import Profile

_SIDES = {"DRAM": "dram", "L2": "l2", "tensor cores": "tensor", "CUDA cores": "cuda"}


def render(profile: Profile) -> str:
    """The page of a profile, as HTML text."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mini_triton.page", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": fmt_bytes,
        "seconds": fmt_seconds,
        "count": "{:,}".format,
        "percent": _percent,
        "name": lambda path: PurePath(path).name or "unknown source",
        "flops": fmt_operations,
    }
    groups = grouped(profile.launches)
    modelled = [group for group in groups if group.launch.hardware]
    return environment.get_template("page.html.j2").render(
        profile=profile,
        groups=groups[:MOST_SHOWN],
        more=max(0, len(groups) - MOST_SHOWN),
        modelled=modelled[:MOST_SHOWN],
        fit=all(group.launch.hardware.fits for group in modelled if group.launch.hardware),
        gpus=sorted({group.launch.hardware.gpu for group in modelled if group.launch.hardware}),
        plots=_plots(modelled),
        listing=listing(groups),
        host=_host(profile.host),
        pictures=pictures,
        sides=_SIDES,
        steps=_steps,
        total=lambda name: sum(
            getattr(group.launch.hardware, name) * group.times for group in modelled
        ),
        findings=[finding.report() for finding in profile.findings],
    )


def _plots(groups: list[Group]) -> dict[str, Plot]:
    """A roofline for each GPU that launches were modelled on, of those known by name."""
    names = {group.launch.hardware.gpu for group in groups if group.launch.hardware}
    return {
        name: plot([g for g in groups if g.launch.hardware and g.launch.hardware.gpu == name], gpu)
        for name in sorted(names)
        if (gpu := GPUS.get(name)) is not None
    }


def _steps(group: Group) -> list[tuple[str, str, int, float]]:
    """(what, CSS class, bytes, share of the largest): from what is asked for to what DRAM moves."""
    hardware, launch = group.launch.hardware, group.launch
    assert hardware is not None
    rows = [
        ("counted", "asked", launch.loaded_bytes + launch.stored_bytes),
        ("asked of L1, in sectors", "l1", 32 * hardware.sectors()),
        ("asked of L2", "l2", 32 * hardware.l2_sectors()),
        ("DRAM", "dram", hardware.dram_bytes),
        ("unique", "unique", hardware.unique_loaded_bytes + hardware.unique_stored_bytes),
    ]
    most = max(1, *(size for _, _, size in rows))
    return [(what, style, size, size / most) for what, style, size in rows]


def _host(ops: Iterable[HostOp]) -> list[tuple[str, int, int, int]]:
    """(operation, how often, bytes loaded, bytes stored)."""
    found: dict[str, list[int]] = {}
    for op in ops:
        row = found.setdefault(op.name, [0, 0, 0])
        row[0] += 1
        row[1] += op.loaded_bytes
        row[2] += op.stored_bytes
    return [(name, *row) for name, row in found.items()]  # type: ignore[misc]


def _percent(share: float) -> str:
    """A share as whole per cent; only what is all of it is 100."""
    return "100 %" if share >= 1 else f"{min(99, round(100 * share))} %"
