"""`with mini_triton.profile() as p:` records every launch and host operation in the region."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mini_triton import settings
from mini_triton.checks import UNWRITTEN, chosen
from mini_triton.errors import SanitizerError
from mini_triton.finding import Finding, distinct, in_words
from mini_triton.hardware.gpu import Gpu, gpu_named
from mini_triton.host import HostCounter, HostOp
from mini_triton.launch import Counted, LaunchRecord, Traffic
from mini_triton.sanitize.fresh import FreshMemory
from mini_triton.sanitize.read_only import read_only as declared_read_only

if TYPE_CHECKING:
    import torch
    from rich.console import RenderableType
    from rich.table import Table

#: Columns in a pipe or a file: tables are as wide as what they hold, and no row is broken.
_PIPE = 400

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
    def findings(self) -> list[Finding]:
        """What checks have found in the kernels, each fault once."""
        return distinct(finding for launch in self.launches for finding in launch.findings)

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
        """Prints tables and listing, and what a GPU and checks have to say, if they were asked."""
        from rich.console import Console

        from mini_triton.display import everything

        console = Console()
        if not console.is_terminal and not console.is_jupyter:
            console = Console(width=_PIPE)
        for part in everything(self):
            console.print(part)

    def html(self, path: str | PathLike[str] | None = None) -> str:
        """The profile as one self-contained page, light or dark; written to `path` if one is given.

        Raises OSError if it cannot be written.
        """
        from mini_triton.page import render

        page = render(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

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
def profile(
    host: bool = True,
    hardware: str | Gpu | None = None,
    check: str | Iterable[str] | None = None,
    read_only: Iterable[torch.Tensor] = (),
    on_finding: Literal["raise", "report"] | None = None,
) -> Iterator[Profile]:
    """Records the launches of the region, and torch operations if `host`; regions may nest.

    hardware: a GPU to model launches on ("sm_90", "H200", or a `hardware.Gpu`), which adds a
    `hardware` record to each; it compiles each kernel once, about a second, and watches all
    accesses. None leaves what an outer region says.

    check: what to look for in kernels: "all", a name or several (`checks`), `()` for what
    is always on; None leaves what an outer region says. Launches that are checked take longer: they
    run on one thread, and some of them several times.

    read_only: tensors that no kernel of the region may write to.

    on_finding: "raise" raises `SanitizerError` at the region's end if a check has found something,
    "report" leaves it in `findings`; None leaves what an outer region says, else "raise".

    Raises ValueError for a GPU that there is no model of, or for a check that there is not.
    """
    recorded = Profile()
    changes: dict[str, Any] = {}
    if hardware is not None:
        changes["hardware"] = gpu_named(hardware)
    if check is not None:
        changes["checks"] = chosen(check)
    if on_finding is not None:
        changes["on_finding"] = on_finding
    _open.append(recorded)
    try:
        with ExitStack() as region:
            in_force = region.enter_context(settings.use(**changes))
            region.enter_context(declared_read_only(*read_only))
            if UNWRITTEN in in_force.checks:  # before the counter, which must not see what it does
                region.enter_context(FreshMemory())
            if host:
                region.enter_context(HostCounter(recorded.host))
            yield recorded
    finally:
        # By identity: profiles with equal contents are equal, and regions may nest.
        _open[:] = [profile for profile in _open if profile is not recorded]
    if recorded.findings and in_force.on_finding == "raise":
        raise SanitizerError(in_words(recorded.findings), recorded.findings)


def record(launch: LaunchRecord) -> None:
    """Adds a launch to all open profiles and to the running totals of `get_stats`.

    Raises `SanitizerError` for findings that no profile is there to raise.
    """
    global _running
    _running += launch.total
    for open_profile in _open:
        open_profile.launches.append(launch)
    if launch.findings and not _open and settings.current().on_finding == "raise":
        raise SanitizerError(in_words(launch.findings), launch.findings)


_running = Traffic()


def reset_stats() -> None:
    """Sets the running totals of `get_stats` to zero."""
    global _running
    _running = Traffic()


def get_stats() -> dict[str, int]:
    """Totals of all launches since `reset_stats`: loaded and stored elements, and their bytes."""
    return vars(_running).copy()
