"""`tt.elementwise_inline_asm`: the few pieces of PTX that Triton's own library is written in.

Those are the conversions of `tl.float8e4b15`, which has 4 bits of exponent (bias 15), 3 of mantissa
and neither infinity nor NaN, and the instructions of programmatic dependent launch, which change
nothing where launches follow each other. PTX of a kernel's own is refused (`refusals`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch

from mini_triton.errors import UnsupportedOp
from mini_triton.execute.registry import pure
from mini_triton.ir.program import Op

Tensor = torch.Tensor

#: float16 bits of 1.75, the largest value that a conversion to float8e4b15 gives.
_LARGEST = 0x3F00


def from_e4b15(bits: Tensor) -> Tensor:
    """float8e4b15 as int8 → float16, exactly."""
    wide = bits.to(torch.int16)
    return ((wide & -32768) | ((wide & 0x7F) << 7)).view(torch.float16)


def to_e4b15(x: Tensor) -> Tensor:
    """float16 → float8e4b15 as int8, to nearest, ties away from zero; NaN becomes 1.75."""
    bits = x.contiguous().view(torch.int16)
    magnitude = torch.where(torch.isnan(x), _LARGEST, bits & 0x7FFF).clamp(max=_LARGEST)
    rounded = (magnitude.to(torch.int32) * 2 + 0x80) >> 8
    return torch.where(bits < 0, rounded - 128, rounded).to(torch.int8)


def _nothing() -> Tensor:
    return torch.zeros(1, dtype=torch.int32)


#: By the start of the SHA-256 of the text, in which every run of spaces is one space.
_KNOWN: dict[str, Callable[..., Tensor]] = {
    "96fc8e9368f6322c": from_e4b15,
    "1e5ddac8c3b280ea": to_e4b15,  # with min.f16x2
    "fdefb6e9449b45bf": to_e4b15,  # without
    "84ac1727aa069b56": _nothing,  # tl.extra.cuda.gdc_wait
    "b96a1883ea375b5b": _nothing,  # tl.extra.cuda.gdc_launch_dependents
}


def fingerprint(op: Op) -> str:
    """What `_KNOWN` finds the text of an operation by."""
    text = " ".join((op.keywords[0] if op.keywords else "").split())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_known(op: Op) -> bool:
    """True for a piece of PTX that the simulator has."""
    return fingerprint(op) in _KNOWN


@pure("tt.elementwise_inline_asm")
def _inline_asm(op: Op, *values: Tensor) -> Tensor:
    compute = _KNOWN.get(fingerprint(op))
    if compute is None:  # refused before anything runs; but handlers answer for themselves
        raise UnsupportedOp("tl.inline_asm_elementwise")
    return compute(*values)
