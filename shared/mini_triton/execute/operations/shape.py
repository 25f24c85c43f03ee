"""Operations that make, move or select lanes without computing on them."""

from __future__ import annotations

import torch

from mini_triton.errors import OutOfBounds
from mini_triton.execute.registry import pure
from mini_triton.execute.tiles.values import Lanes, Pointer, expand, pointer_at, transposed
from mini_triton.ir.program import Op

Tensor = torch.Tensor


@pure("arith.constant")
def _constant(op: Op) -> Tensor:
    """One element for a scalar or a splat; the whole tile only for a listed one."""
    kind = op.types[0]
    value = op.attrs["value"]
    if isinstance(value, list):
        return torch.tensor(value, dtype=torch.float64 if kind.is_float else torch.int64).to(
            kind.dtype
        )[None]
    if kind.is_float:
        single = torch.tensor([value], dtype=torch.float64).to(kind.dtype)
    else:
        single = torch.tensor([_wrapped(int(value), kind.bits)]).to(kind.dtype)
    return single.reshape(1, *(1 for _ in kind.shape))


def _wrapped(value: int, bits: int) -> int:
    """A literal as a signed integer of its width (TTIR may print it unsigned)."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


@pure("ub.poison")
def _poison(op: Op) -> Lanes:
    kind = op.types[0]
    ones = (1,) * (1 + len(kind.shape))
    if kind.is_pointer:
        assert kind.pointee is not None
        return pointer_at(None, torch.zeros(ones, dtype=torch.int64), kind.pointee.dtype)
    return torch.zeros(ones, dtype=kind.dtype)


@pure("tt.make_range")
def _make_range(op: Op) -> Tensor:
    return torch.arange(op.attrs["start"], op.attrs["end"], dtype=torch.int32)[None]


@pure("tt.splat")
def _splat(op: Op, x: Lanes) -> Lanes:
    ones = (1,) * len(op.types[0].shape)
    if isinstance(x, Pointer):
        return x.splat(len(ones))
    return x.reshape(x.shape[0], *ones)


@pure("tt.unsplat")
def _unsplat(op: Op, x: Lanes) -> Lanes:
    if isinstance(x, Pointer):
        return x.of_lanes(x.lanes.reshape(x.lanes.shape[0]))
    return x.reshape(x.shape[0])


@pure("tt.broadcast", "ttg.convert_layout")
def _broadcast(op: Op, x: Lanes) -> Lanes:
    """An axis of size 1 already stands for all of its lanes."""
    return x


@pure("tt.expand_dims")
def _expand_dims(op: Op, x: Lanes) -> Lanes:
    axis = op.attrs["axis"]
    return x.expand_dims(axis) if isinstance(x, Pointer) else x.unsqueeze(axis + 1)


@pure("tt.reshape")
def _reshape(op: Op, x: Lanes) -> Lanes:
    old, new = op.operand_types[0].shape, op.types[0].shape
    if isinstance(x, Pointer):
        return x.of_lanes(_reshaped(x.lanes, old, new))
    return _reshaped(x, old, new)


def _reshaped(x: Tensor, old: tuple[int, ...], new: tuple[int, ...]) -> Tensor:
    if all(size == 1 for size in x.shape[1:]):  # the same value in every lane
        return x.reshape(x.shape[0], *(1 for _ in new))
    return expand(x, old).reshape(x.shape[0], *new)


@pure("tt.trans")
def _transpose(op: Op, x: Lanes) -> Lanes:
    order = tuple(op.attrs["order"])
    return x.transpose(order) if isinstance(x, Pointer) else transposed(x, order)


@pure("tt.cat")
def _concatenate(op: Op, a: Tensor, b: Tensor) -> Tensor:
    programs = max(a.shape[0], b.shape[0])
    parts = [v.expand(programs, *t.shape) for v, t in zip((a, b), op.operand_types, strict=True)]
    return torch.cat(parts, dim=1)


@pure("tt.join")
def _join(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """A new last axis of size 2."""
    return torch.stack(torch.broadcast_tensors(a, b), dim=-1)


@pure("tt.split")
def _split(op: Op, x: Tensor) -> tuple[Tensor, Tensor]:
    """The two halves of the last axis, whose size is 2."""
    return (x[..., 0], x[..., -1])


@pure("arith.select")
def _select(op: Op, condition: Tensor, a: Lanes, b: Lanes) -> Lanes:
    rank = len(op.types[0].shape)
    condition = condition.reshape(condition.shape + (1,) * (1 + rank - condition.ndim))
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        if a.buffer is not b.buffer or a.dtype != b.dtype:
            a, b = a.absolute(), b.absolute()
        return a.of_lanes(torch.where(condition, a.lanes, b.lanes))
    assert isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    if a.dtype.itemsize == 1 and a.dtype.is_floating_point:  # torch.where lacks 8-bit floats
        bits = torch.where(condition, a.view(torch.int8), b.view(torch.int8))
        return bits.view(a.dtype)
    return torch.where(condition, a, b)


@pure("tt.gather")
def _gather(op: Op, source: Tensor, index: Tensor) -> Tensor:
    """`source` at `index` along one axis, within each program."""
    axis = op.attrs["axis"] + 1
    programs = max(source.shape[0], index.shape[0])
    full_source = source.expand(programs, *op.operand_types[0].shape)
    full_index = index.expand(programs, *op.operand_types[1].shape).to(torch.int64)
    size = full_source.shape[axis]
    outside = (full_index < 0) | (full_index >= size)
    if outside.any():
        raise OutOfBounds(
            f"tl.gather takes element {int(full_index[outside][0])} of an axis with elements 0 to "
            f"{size - 1}"
        )
    if full_source.dtype.itemsize == 1 and full_source.dtype != torch.bool:  # no 8-bit floats there
        bits = full_source.contiguous().view(torch.int8)
        return torch.gather(bits, axis, full_index).view(source.dtype)
    return torch.gather(full_source, axis, full_index)
