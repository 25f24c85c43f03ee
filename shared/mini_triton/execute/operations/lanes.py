"""Runs the region of an operation (a combine function, a map) on lanes.

To the region its arguments are scalars, as those of a kernel are: so lanes stand where programs
stand, and part as programs do if the region branches or loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from mini_triton.errors import BadProgram
from mini_triton.execute.control import run_function
from mini_triton.execute.tiles.values import dense
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


def on_lanes(frame: Frame, op: Op, columns: int) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """A function from the arguments of `op`'s region to its results, both lanes of shape (n,).

    columns: n is a multiple of it; lane i belongs to the column i % columns, and the columns are
    divided evenly among the programs of the frame (or all belong to all of them).
    """
    region = op.regions[0]
    block = region.entry
    own = set(block.args) | {slot for inner in block.ops for slot in inner.results}
    apart = len(region.blocks) > 1 or any(
        inner.regions or inner.name == "tt.call" or any(slot not in own for slot in inner.operands)
        for inner in block.ops
    )
    each = -(-columns // frame.count)
    program = torch.arange(columns) // each if columns % frame.count == 0 else None

    def run(arguments: Sequence[Tensor]) -> list[Tensor]:
        if len(arguments) != len(block.args):
            raise BadProgram(
                f"the region of {op.name} has {len(block.args)} arguments, "
                f"{len(arguments)} are given"
            )
        count = arguments[0].shape[0]
        inner = frame
        if apart:
            positions = torch.zeros(columns, dtype=torch.int64) if program is None else program
            inner = frame.child(positions.repeat(count // columns))
        for slot, value in zip(block.args, arguments, strict=True):
            inner[slot] = value
        results = (
            run_function(inner, region)
            if len(region.blocks) > 1
            else frame.machine.run_block(inner, block)[1]
        )
        return [v.expand(count) for v in map(dense, results) if isinstance(v, torch.Tensor)]

    return run
