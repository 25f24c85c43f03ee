"""Launches that are alike, shown once, with how often there were such."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from mini_triton.launch import LaunchRecord

#: Groups that a page shows in full.
MOST_SHOWN = 40


@dataclass
class Group:
    """Launches of one kernel that moved, and cost, the same.

    Attributes:
        number: from 1, in order of the first such launch.
        launch: the first of them.
        times: how many there are.
    """

    number: int
    launch: LaunchRecord
    times: int

    @property
    def label(self) -> str:
        """The kernel and its grid, without axes of size 1 at its end."""
        grid = list(self.launch.grid)
        while len(grid) > 1 and grid[-1] == 1:
            grid.pop()
        return f"{self.launch.kernel} [{', '.join(f'{n:,}' for n in grid)}]"

    def lines(self) -> list[tuple[str, int, str]]:
        """(file name, line, what is wrong) of accesses that ask for too many sectors."""
        hardware = self.launch.hardware
        return [
            (
                PurePath(access.file).name,
                access.line,
                f"{access.kind} of {access.tensor}: {access.sectors:,} sectors, "
                f"{access.ideal:,} would do",
            )
            for access in (hardware.accesses if hardware else ())
            if access.efficiency < 0.8
        ]


def grouped(launches: Iterable[LaunchRecord]) -> list[Group]:
    """The launches, alike ones together."""
    found: dict[str, Group] = {}
    for launch in launches:
        data = launch.to_dict()
        data.pop("findings", None)
        key = json.dumps(data, sort_keys=True)
        if key in found:
            found[key].times += 1
        else:
            found[key] = Group(len(found) + 1, launch, 1)
    return list(found.values())
