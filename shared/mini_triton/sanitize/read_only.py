"""Writes to tensors that were declared read-only: `with mini_triton.read_only(x, g): …`.

A declaration costs nothing where a kernel cannot store through such an argument at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from mini_triton.checks import READ_ONLY
from mini_triton.execute.memory.observe import Access
from mini_triton.finding import Finding, Place, times
from mini_triton.sanitize.geometry import marked
from mini_triton.sanitize.races import named
from mini_triton.sanitize.shadow import Shadow, Touched, element

_TABLE = "read only"
_declared: list[torch.Tensor] = []


@contextmanager
def read_only(*tensors: torch.Tensor) -> Iterator[None]:
    """Declares that no kernel of the region may write to elements of these tensors.

    A kernel that does is reported (`LaunchRecord.findings`), and raises `SanitizerError` at the end
    of the enclosing `profile`, or at its launch if there is none.
    """
    before = len(_declared)
    _declared.extend(tensors)
    try:
        yield
    finally:
        del _declared[before:]


def declared(args: Sequence[Any]) -> dict[int, torch.Tensor]:
    """Which of the elements that each argument reaches are read-only, bool (n,), by position."""
    found: dict[int, torch.Tensor] = {}
    for position, argument in enumerate(args):
        if not isinstance(argument, torch.Tensor) or not argument.numel():
            continue
        for tensor in _declared:
            if tensor.numel() and (marks := marked(argument, tensor)) is not None:
                found[position] = found[position] | marks if position in found else marks
    return found


@dataclass
class ReadOnly:
    """Looks for writes to read-only elements; an observer's check.

    Attributes:
        given: see `declared`.
    """

    given: Mapping[int, torch.Tensor]
    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    _regions: set[int] = field(default_factory=set)

    def begin(self, shadow: Shadow) -> None:
        """Marks the regions in which there are such elements."""
        for buffer in shadow.buffers:
            marks = self.given.get(buffer.position)
            if marks is None or not buffer.stored_to:
                continue
            self._regions.add(id(shadow.mark(buffer, marks, _TABLE)))

    def wants(self, access: Access) -> bool:
        """Only what writes."""
        return access.kind != "load" and bool(self._regions)

    def access(self, access: Access, touched: Touched) -> None:
        """Reports the first write of an operation to such an element."""
        key = (access.buffer.position, id(access.op))
        if id(touched.region) not in self._regions or key in self.findings:
            return
        bad = touched.region.table(_TABLE, 0, bool)[touched.at]
        if not bad.any():
            return
        lane = int(bad.nonzero()[0][0])
        machine = access.frame.machine
        index = element(touched.region, int(touched.at[lane]), access.buffer)
        program = machine.program_id(int(touched.programs[lane]))
        what = named(access.buffer, index)
        count = len(np.unique(touched.at[bad])) // touched.units
        does = "updates" if access.kind == "atomic" else "stores to"
        self.findings[key] = Finding(
            READ_ONLY,
            f"program {program} {does} {what}, which was declared read-only{times(count)}",
            machine.kernel,
            (Place.of(access.op.where, access.kind, f"program {program} {does} {what}"),),
            access.buffer.name,
            index,
            (program,),
            "who passed this tensor still needs what it holds",
            "allocate a tensor for the result, or pass a copy",
        )

    def finish(self, shadow: Shadow) -> None:
        """Nothing is left to say."""
