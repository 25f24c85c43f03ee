"""`tt.dot_scaled`: products of tiles in microscaling formats, a scale for every 32 (or 16) factors.

Source: OCP Microscaling Formats (MX) Specification v1.0. Factors and scales are brought to bfloat16
(float16, if one factor is that) before they are multiplied, and sums are float32, as Triton has it
on hardware that has no such product of its own: sm_90.
"""

from __future__ import annotations

import torch

from mini_triton.errors import BadProgram
from mini_triton.execute.operations.cast import rounded
from mini_triton.execute.registry import pure
from mini_triton.execute.tiles.values import expand
from mini_triton.ir.program import Op

Tensor = torch.Tensor

#: The values of e2m1: a sign, 2 bits of exponent, 1 of mantissa.
_E2M1 = torch.tensor([s * v for s in (1.0, -1.0) for v in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)])
#: Formats whose factors may come as the bits of integers.
_OF_BITS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
_KNOWN = {"e2m1", "bf16", "fp16", *_OF_BITS}


@pure("tt.dot_scaled")
def _dot_scaled(op: Op, *values: Tensor) -> Tensor:
    """(…, M, K) × (…, K, N) + (…, M, N); scales are (…, M, K/32) and (…, N, K/32)."""
    full = [expand(v, kind.shape) for v, kind in zip(values, op.operand_types, strict=True)]
    formats = [str(op.attrs.get(side)) for side in ("lhs", "rhs")]
    if not set(formats) <= _KNOWN:
        raise BadProgram(f"tl.dot_scaled has no formats {' and '.join(formats)}")
    dtype = torch.float16 if "fp16" in formats else torch.bfloat16
    queue = list(full)
    left = _factor(op, queue, 0, formats[0], dtype)
    right = _factor(op, queue, 1, formats[1], dtype)
    (start,) = queue
    if left.shape[-1] != right.shape[-2]:
        raise BadProgram(f"tl.dot_scaled of {left.shape[-1]} by {right.shape[-2]}")
    product = torch.matmul(left.float().contiguous(), right.float().contiguous())
    return (start.float() + product).to(op.types[0].dtype)


def _factor(op: Op, queue: list[Tensor], side: int, kind: str, dtype: torch.dtype) -> Tensor:
    """One factor, scaled, in `dtype`; takes it and its scale off the queue of operands."""
    across = -1 if side == 0 else -2  # the axis that is summed over
    packed_along = across if op.attrs.get(f"{'lr'[side]}hs_k_pack", True) else -3 - across
    x = queue.pop(0)
    if kind == "e2m1":
        x = _unpacked(x, packed_along)
    elif x.dtype == torch.int8:
        x = x.view(_OF_BITS[kind])
    x = rounded(x.float(), dtype)
    if not op.attrs["scaled"][side]:
        return x
    scale = queue.pop(0)
    if side == 1:
        scale = scale.mT
    groups, count = scale.shape[across], x.shape[across]
    if groups == 0 or count % groups:
        raise BadProgram(f"tl.dot_scaled has {groups} scales for {count} factors")
    factor = _scale(scale, dtype).repeat_interleave(count // groups, dim=across)
    return rounded(x.float() * factor.float(), dtype)


def _unpacked(x: Tensor, axis: int) -> Tensor:
    """Two numbers a byte, the first one in the low bits."""
    halves = torch.stack((x & 0xF, (x >> 4) & 0xF), dim=axis)
    merged = halves.flatten(-2) if axis == -1 else halves.flatten(-3, -2)
    return _E2M1[merged.to(torch.int64)]


def _scale(scale: Tensor, dtype: torch.dtype) -> Tensor:
    """A scale as a float: e8m0 (2ⁿ⁻¹²⁷, 255 is NaN) comes as integers, e4m3 as such."""
    if scale.dtype != torch.int8:
        return rounded(scale.float(), dtype)
    bits = scale.to(torch.int32) & 0xFF
    power = torch.where(bits == 0, 1 << 22, bits << 23).view(torch.float32)  # 2⁻¹²⁷ is subnormal
    return rounded(torch.where(bits == 255, torch.nan, power), dtype)
