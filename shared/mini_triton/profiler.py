"""`with mini_triton.profile() as p:` records every launch and host operation in the region."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mini_triton.host import HostCounter, HostOp
from mini_triton.launch import Counted, LaunchRecord, Traffic

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_open: list[Profile] = []


@dataclass
class Profile(Counted):
    """What the kernels launched in a region, and the torch operations beside them, have moved.

    All counts are exact. `loaded` and `stored` are elements whose mask was true, summed over all
    programs; bytes are those times the element size.
    """

    launches: list[LaunchRecord] = field(default_factory=list)
    host: list[HostOp] = field(default_factory=list)

    @property
    def total(self) -> Traffic:
        """Over all kernels."""
        total = Traffic()
        for launch in self.launches:
            total += launch.total
        return total

    @property
    def host_loaded_bytes(self) -> int:
        """Bytes read by torch operations outside kernels."""
        return sum(op.loaded_bytes for op in self.host)

    @property
    def host_stored_bytes(self) -> int:
        """Bytes written by torch operations outside kernels."""
        return sum(op.stored_bytes for op in self.host)

    @property
    def lines(self) -> dict[tuple[str, int], Traffic]:
        """Traffic per source line (file, line), over all launches."""
        lines: dict[tuple[str, int], Traffic] = {}
        for launch in self.launches:
            for line, traffic in launch.lines.items():
                total = lines.setdefault(line, Traffic())
                total += traffic
        return lines

    def table(self) -> Table:
        """A rich table: a row per launch and tensor, then the host's operations, then totals."""
        from mini_triton.display import traffic_table

        return traffic_table(self)

    def listing(self) -> RenderableType:
        """The kernels' source with the bytes that each line loaded and stored."""
        from mini_triton.display import annotated_source

        return annotated_source(self)

    def show(self) -> None:
        """Prints table and listing to the terminal."""
        from rich.console import Console

        console = Console()
        console.print(self.table())
        console.print(self.listing())

    def to_dict(self) -> dict[str, Any]:
        """Plain data: totals, launches (per tensor and line) and host operations."""
        return {
            "kernels": vars(self.total).copy(),
            "launches": [launch.to_dict() for launch in self.launches],
            "host": [vars(op).copy() for op in self.host],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)


@contextmanager
def profile(host: bool = True) -> Iterator[Profile]:
    """Records the launches of the region, and torch operations if `host`; regions may nest."""
    recorded = Profile()
    _open.append(recorded)
    try:
        if host:
            with HostCounter(recorded.host):
                yield recorded
        else:
            yield recorded
    finally:
        # By identity: profiles with equal contents are equal, and regions may nest.
        _open[:] = [profile for profile in _open if profile is not recorded]


def record(launch: LaunchRecord) -> None:
    """Adds a launch to all open profiles and to the running totals of `get_stats`."""
    global _running
    _running += launch.total
    for open_profile in _open:
        open_profile.launches.append(launch)


_running = Traffic()


def reset_stats() -> None:
    """Sets the running totals of `get_stats` to zero."""
    global _running
    _running = Traffic()


def get_stats() -> dict[str, int]:
    """Totals of all launches since `reset_stats`: loaded and stored elements, and their bytes."""
    return vars(_running).copy()
