"""`tt.histogram`: how often each of the numbers 0 … bins−1 is in a tile, for each program.

Numbers are read without a sign, as TTIR does not say; those from `bins` on are counted nowhere,
which Triton leaves undefined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.execute.registry import framed
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


@framed("tt.histogram")
def _histogram(frame: Frame, op: Op) -> Tensor:
    """(p, N) integers, with an optional mask, → (p, bins)."""
    (bins,) = op.types[0].shape
    values = frame.tensor(op.operands[0])
    mask = frame.tensor(op.operands[1]) if len(op.operands) > 1 else None
    programs = max(values.shape[0], mask.shape[0] if mask is not None else 1)
    shape = (programs, *op.operand_types[0].shape)
    bits = 8 * values.element_size()
    values = values.expand(shape).to(torch.int64) & ((1 << bits) - 1 if bits < 64 else -1)
    counted = (values >= 0) & (values < bins)
    if mask is not None:
        counted &= mask
    bin_of = values + torch.arange(programs)[:, None] * bins
    counts = torch.bincount(bin_of[counted], minlength=programs * bins)
    return counts.reshape(programs, bins).to(op.types[0].dtype)
