"""Pointer arithmetic. What a pointer is, `values.Pointer` says."""

from __future__ import annotations

import torch

from mini_triton.execute.registry import lazy, pure
from mini_triton.execute.tiles.affine import Affine
from mini_triton.execute.tiles.values import Pointer, pointer_at
from mini_triton.ir.program import Op

Tensor = torch.Tensor


@lazy("tt.addptr")
def _advance(op: Op, pointer: Pointer, offset: Tensor | Affine) -> Pointer:
    return pointer.advance(offset)


@pure("tt.ptr_to_int")
def _pointer_to_int(op: Op, x: Pointer) -> Tensor:
    return x.absolute().lanes


@pure("tt.int_to_ptr")
def _int_to_pointer(op: Op, x: Tensor) -> Pointer:
    pointee = op.types[0].pointee
    assert pointee is not None
    return pointer_at(None, x.to(torch.int64), pointee.dtype)
