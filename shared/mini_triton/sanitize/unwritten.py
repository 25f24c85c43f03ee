"""Loads of memory that nobody has written: neither an operation on the host nor a kernel.

What such memory holds is up to whoever had it before. Which elements it is about comes with the
launch (`Launch.unwritten`, from `fresh`), and is up to date when the launch has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from mini_triton.checks import UNWRITTEN
from mini_triton.execute.memory.observe import Access
from mini_triton.finding import Finding, Place, times
from mini_triton.sanitize.races import named
from mini_triton.sanitize.shadow import Shadow, Touched, element

_TABLE = "unwritten"


@dataclass
class Unwritten:
    """Looks for such loads; an observer's check.

    Attributes:
        given: of each argument, by position, which of the elements that it reaches nobody has
            written, bool (n,); changed in place by `finish`.
    """

    given: Mapping[int, torch.Tensor]
    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    _regions: set[int] = field(default_factory=set)

    def begin(self, shadow: Shadow) -> None:
        """Marks the regions in which there is such memory."""
        for buffer in shadow.buffers:
            marks = self.given.get(buffer.position)
            if marks is None or not marks.any():
                continue
            self._regions.add(id(shadow.mark(buffer, marks, _TABLE)))

    def wants(self, access: Access) -> bool:
        """Any access may load or write such memory."""
        return bool(self._regions)

    def access(self, access: Access, touched: Touched) -> None:
        """Reports what is loaded unwritten; marks what is written."""
        region = touched.region
        if id(region) not in self._regions:
            return
        table = region.table(_TABLE, 0, bool)
        reads = access.kind == "load" or (access.kind == "atomic" and _reads(access))
        if reads and (bad := table[touched.at]).any():
            self._found(access, touched, bad)
        if access.kind != "load":
            table[touched.at] = False
            if not table.any():
                self._regions.discard(id(region))

    def _found(self, access: Access, touched: Touched, bad: np.ndarray) -> None:
        key = (access.buffer.position, id(access.op))
        if key in self.findings:
            return
        lane = int(bad.nonzero()[0][0])
        region, buffer, machine = touched.region, access.buffer, access.frame.machine
        index = element(region, int(touched.at[lane]), buffer)
        program = machine.program_id(int(touched.programs[lane]))
        what = named(buffer, index)
        does = "updates" if access.kind == "atomic" else "loads"
        count = len(np.unique(touched.at[bad])) // touched.units
        self.findings[key] = Finding(
            UNWRITTEN,
            f"program {program} {does} {what}, which nobody has written{times(count)}",
            machine.kernel,
            (Place.of(access.op.where, access.kind, f"program {program} {does} {what}"),),
            buffer.name,
            index,
            (program,),
            "memory from torch.empty holds what was there before: other numbers at every run",
            f"fill `{buffer.name}` first, in a kernel or with torch.zeros, or mask these lanes "
            "off in the load",
        )

    def finish(self, shadow: Shadow) -> None:
        """Says in `given` what is unwritten after the launch."""
        for buffer in shadow.buffers:
            marks = self.given.get(buffer.position)
            region = shadow.region(buffer)
            if marks is not None and region.has(_TABLE):
                size = buffer.flat.element_size() // region.unit
                first = (buffer.address - region.start) // region.unit
                part = region.table(_TABLE, 0, bool)[first : first + len(marks) * size]
                marks.copy_(torch.from_numpy(part.reshape(-1, size).any(1)))


def _reads(access: Access) -> bool:
    """Whether an atomic update depends on what was there: all but an exchange does."""
    return access.op.used or access.op.keywords[0] != "exch"
