"""`tt.dot`: products of two tiles, with the precision that the kernel asks for.

float16 and bfloat16 products are exact in float32, where they are accumulated, as tensor cores do.
float32 operands are rounded to TF32 (10 bits of mantissa, ties away from zero: `cvt.rna.tf32`) when
the kernel says `tf32`, Triton's default, and kept whole for `ieee`, `tf32x3` and `bf16x*`, which
emulate float32. Integer products are exact and wrap at 32 bits, as Hopper's
`wgmma` has it (`mma`, which small tiles get there, saturates every 32 products).
"""

from __future__ import annotations

import torch

from mini_triton.execute.registry import pure
from mini_triton.ir.program import Op

Tensor = torch.Tensor


def to_tf32(x: Tensor) -> Tensor:
    """float32 → float32 with 10 bits of mantissa, ties away from zero."""
    bits = x.contiguous().view(torch.int32)
    rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(x), rounded, x)


@pure("tt.dot")
def _dot(op: Op, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """(…, M, K) × (…, K, N) + (…, M, N); each operand may be the same for all programs."""
    full = [
        x.expand(x.shape[0], *kind.shape)
        for x, kind in zip((a, b), op.operand_types[:2], strict=True)
    ]
    result_type = op.types[0]
    if not a.dtype.is_floating_point:
        product = torch.matmul(full[0].double(), full[1].double())  # exact below 2^53
        return c + product.to(torch.int64).to(result_type.dtype)
    if a.dtype == torch.float64:
        return c + torch.matmul(*full)
    x, y = full[0].float(), full[1].float()
    if a.dtype == torch.float32 and op.attrs.get("inputPrecision", "ieee") == "tf32":
        x, y = to_tf32(x), to_tf32(y)
    product = torch.matmul(x, y)
    return (c.float() + product).to(result_type.dtype) if c.dtype != torch.float32 else product + c
