"""`tt.load` and `tt.store`: bounds first, then the copy, then the count.

An access is checked as a whole before it touches memory, and a failed launch puts back what its
earlier stores changed (`machine`). Counted are the lanes whose mask is true, over all programs that
run, whether or not lanes coincide: what the kernel asks the memory system for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.errors import OutOfBounds
from mini_triton.execute.access import Windows, leading_lanes, windows
from mini_triton.execute.observe import Access, Kind
from mini_triton.execute.registry import framed
from mini_triton.execute.shared_tiles import Shared
from mini_triton.execute.values import (
    Buffer,
    Pointer,
    broadcast_shape,
    count_lanes,
    dense,
    pointer_at,
)
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor

#: Bits of an element, for numpy, which knows neither bfloat16 nor 8-bit floats.
_CARRIER = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@framed("tt.load")
def _load(frame: Frame, op: Op) -> Tensor | Shared:
    pointer = frame[op.operands[0]]
    assert isinstance(pointer, Pointer)
    mask = frame.tensor(op.operands[1]) if len(op.operands) > 1 else None
    other = frame.tensor(op.operands[2]) if len(op.operands) > 2 else None
    shape = op.types[0].shape
    mask, active = active_lanes(frame, mask, shape)
    if other is None:
        other = zero(op) if mask is None else frame.machine.undefined(op)
    if active == 0:
        return other
    if pointer.buffer is None:
        return _load_by_address(frame, op, pointer, mask, other)
    frame.machine.count(op, pointer.buffer, "loaded", active, pointer.dtype.itemsize)
    return _read(frame, op, pointer, mask, other)


@framed("tt.store")
def _store(frame: Frame, op: Op) -> None:
    pointer = frame[op.operands[0]]
    assert isinstance(pointer, Pointer)
    value = frame.tensor(op.operands[1])
    mask = frame.tensor(op.operands[2]) if len(op.operands) > 2 else None
    shape = op.operand_types[0].shape
    mask, active = active_lanes(frame, mask, shape)
    if active == 0:
        return
    if pointer.buffer is None:
        for buffer, part, part_mask in by_buffer(frame, op, pointer, mask):
            count = int(expand_all(frame, part_mask, shape).sum())
            frame.machine.count(op, buffer, "stored", count, part.dtype.itemsize)
            _write(frame, op, part, part_mask, value, shape)
        return
    frame.machine.count(op, pointer.buffer, "stored", active, pointer.dtype.itemsize)
    _write(frame, op, pointer, mask, value, shape)


def zero(op: Op) -> Tensor:
    """What lanes hold that an operation leaves undefined, unless somebody asks what they do."""
    return torch.zeros((1,) * (1 + len(op.types[0].shape)), dtype=op.types[0].dtype)


def active_lanes(
    frame: Frame, mask: Tensor | None, shape: tuple[int, ...]
) -> tuple[Tensor | None, int]:
    """(mask, or None where it is true everywhere; how many lanes it lets through)."""
    total = count_lanes(shape, frame.count)
    if mask is None:
        return None, total
    mask = mask.reshape(mask.shape + (1,) * (1 + len(shape) - mask.ndim))
    true = int(mask.sum())
    if true == mask.numel():
        return None, total
    return mask, true * (total // mask.numel())


def expand_all(frame: Frame, value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The value with every axis full, the programs' too."""
    return value.expand(frame.count, *shape)


_VERBS: dict[Kind, str] = {"load": "loads", "store": "stores", "atomic": "updates"}


def observe(
    frame: Frame,
    op: Op,
    kind: Kind,
    pointer: Pointer,
    mask: Tensor | None,
    shape: tuple[int, ...],
    values: Tensor | None = None,
) -> None:
    """Checks an access's bounds, then tells it to the launch's observers."""
    buffer = pointer.buffer
    assert buffer is not None
    access = Access(kind, op, buffer, frame, pointer, mask, shape, values)
    numel = buffer.as_dtype(pointer.dtype).numel()
    check_bounds(frame, op, buffer, access.offsets, access.mask, numel, _VERBS[kind])
    for observer in frame.machine.observers:
        observer.access(access)


def _read(
    frame: Frame, op: Op, pointer: Pointer, mask: Tensor | None, other: Tensor
) -> Tensor | Shared:
    buffer = pointer.buffer
    assert buffer is not None
    flat = buffer.as_dtype(pointer.dtype)
    if frame.machine.observers:
        observe(frame, op, "load", pointer, mask, op.types[0].shape)
    found = windows(pointer, shared=True)
    if found is not None:
        tiles = _read_windows(found, buffer, flat, mask, other)
        if tiles is not None and found.sharing is not None and len(tiles) < frame.count:
            common = Shared(tiles, found.sharing)
            return common if op.shares else common.dense
        if tiles is not None:
            return tiles
    offsets = pointer.lanes
    check_bounds(frame, op, buffer, offsets, mask, flat.numel(), "loads")
    if mask is not None:
        offsets = torch.where(mask, offsets, torch.zeros_like(offsets))
    carrier = _CARRIER[flat.element_size()] if flat.dtype.itemsize == 1 else flat.dtype
    loaded = flat.view(carrier)[offsets].view(flat.dtype)
    return loaded if mask is None else torch.where(mask, loaded, other)


def _read_windows(
    found: Windows, buffer: Buffer, flat: Tensor, mask: Tensor | None, other: Tensor
) -> Tensor | None:
    """Loads through strided views, where all that they reach is inside; else None.

    The tiles are those of the windows, or of the programs if mask or `other` differ by program.
    """
    numel = flat.numel()
    if mask is None:
        return _gathered(found, flat, buffer.stored_to) if found.within(numel) else None
    count = leading_lanes(mask) if mask.ndim > 1 else None
    leading = count is not None and found.first(count).within(numel)
    if not leading and not found.within(numel):
        return None
    if leading:
        assert count is not None
        found = found.first(count)
    view = _gathered(found, flat, copy=False)
    if found.sharing is not None and max(len(mask), len(other)) > 1:
        view = view.index_select(0, found.sharing.index)
    if leading:
        assert count is not None
        return _read_leading(view, count, mask, other)
    return torch.where(mask, view, other)


def _gathered(found: Windows, flat: Tensor, copy: bool) -> Tensor:
    """The windows' elements: a view of the buffer where that is safe and possible."""
    views = found.of(flat)
    if len(views) > 1:
        return torch.cat(views)
    return views[0].clone() if copy else views[0]


def _read_leading(view: Tensor, count: int, mask: Tensor, other: Tensor) -> Tensor:
    """A load whose mask lets the first `count` lanes of the last axis through."""
    size = broadcast_shape(view.shape[:-1], other.shape[:-1])
    result = view.new_empty((*size, mask.shape[-1]))
    result[..., :count] = view
    result[..., count:] = other if other.shape[-1] == 1 else other[..., count:]
    return result


def _write(
    frame: Frame,
    op: Op,
    pointer: Pointer,
    mask: Tensor | None,
    value: Tensor,
    shape: tuple[int, ...],
) -> None:
    buffer = pointer.buffer
    assert buffer is not None
    flat = buffer.as_dtype(pointer.dtype)
    if frame.machine.observers:
        observe(frame, op, "store", pointer, mask, shape, value)
    found = windows(pointer)
    if found is not None and _write_windows(frame, found, flat, mask, value, shape):
        return
    offsets = expand_all(frame, pointer.lanes, shape)
    check_bounds(frame, op, buffer, offsets, mask, flat.numel(), "stores")
    values = expand_all(frame, value, shape)
    if mask is not None:
        keep = expand_all(frame, mask, shape)
        offsets, values = offsets[keep], values[keep]
    carrier = _CARRIER[flat.element_size()]
    # numpy assigns in order: of programs that store to one element, the last one wins, always.
    flat.view(carrier).numpy()[offsets.reshape(-1).numpy()] = (
        values.contiguous().view(carrier).reshape(-1).numpy()
    )


def _write_windows(
    frame: Frame,
    found: Windows,
    flat: Tensor,
    mask: Tensor | None,
    value: Tensor,
    shape: tuple[int, ...],
) -> bool:
    """Stores through strided views where that is right; False leaves it to the general way.

    Where programs store to the same elements, the last one in grid order wins, here as there.
    """
    if not found.distinct_lanes(shape):
        return False
    if mask is not None:
        count = leading_lanes(mask) if shape else None
        if count is None:
            return False
        found = found.first(count)
        value = value if value.shape[-1] == 1 else value[..., :count]
    if not found.within(flat.numel()):
        return False
    views = found.of(flat)
    if found.step is None:
        for program, view in enumerate(views):
            view[0].copy_(value[program if value.shape[0] > 1 else 0])
        return True
    if found.programs > 1 and not found.distinct_programs:
        return False
    views[0].copy_(value[-1:] if found.programs == 1 else value)
    return True


def check_bounds(
    frame: Frame,
    op: Op,
    buffer: Buffer,
    offsets: Tensor,
    mask: Tensor | None,
    numel: int,
    verb: str,
) -> None:
    """Raises `OutOfBounds` for the first program, in grid order, with a lane outside."""
    bad = (offsets < 0) | (offsets >= numel)
    if mask is not None:
        bad = bad & mask
    if not bad.any():
        return
    bad = bad.expand(frame.count, *bad.shape[1:])
    position = bad.nonzero()[0]
    full = torch.broadcast_to(offsets, bad.shape)
    raise OutOfBounds(
        _describe(frame, op, buffer, int(full[tuple(position)]), position.tolist(), numel, verb)
    )


def _describe(
    frame: Frame, op: Op, buffer: Buffer, offset: int, position: list[int], numel: int, verb: str
) -> str:
    program = frame.machine.program_id(int(frame.programs[position[0]]))
    lane = f", lane {position[1:]} of the tile" if len(position) > 1 else ""
    where = (
        f"which is empty: shape {buffer.shape}"
        if numel == 0
        else f"{'before its first' if offset < 0 else 'after its last'} element: shape "
        f"{buffer.shape}, strides {buffer.stride}, so that its pointer reaches elements 0 to "
        f"{numel - 1}"
    )
    masked = len(op.operands) > (2 if op.name == "tt.store" else 1)
    hint = (
        "the mask lets this lane through: compare it with the tensor's sizes and strides"
        if masked
        else "the access has no mask: give it one that is true only inside the tensor"
    )
    return (
        f"{op.where}: kernel {frame.machine.kernel}, program {program}{lane}, {verb} element "
        f"{offset} of {buffer.name}, {where}. No memory was changed; {hint}."
    )


# -------------------------------------------------------------------- pointers of unknown origin
def by_buffer(
    frame: Frame, op: Op, pointer: Pointer, mask: Tensor | None
) -> list[tuple[Buffer, Pointer, Tensor]]:
    """Sorts byte addresses into the launch's tensors: (buffer, pointer into it, mask)."""
    address = pointer.lanes
    left = (
        torch.ones_like(address, dtype=torch.bool) if mask is None else mask & (address == address)
    )
    parts = []
    for buffer in frame.machine.buffers:
        inside = left & (address >= buffer.origin) & (address < buffer.origin + buffer.nbytes)
        if inside.any():
            offsets = (address - buffer.origin) // pointer.dtype.itemsize
            parts.append((buffer, pointer_at(buffer, offsets, pointer.dtype), inside))
            left = left & ~inside
    if left.any():
        left = left.expand(frame.count, *left.shape[1:])
        position = left.nonzero()[0]
        program = frame.machine.program_id(int(frame.programs[position[0]]))
        raise OutOfBounds(
            f"{op.where}: kernel {frame.machine.kernel}, program {program}: a computed address "
            "lies in no tensor of this launch, and in none whose data_ptr() is in one. No memory "
            "was changed; pass the tensor that it belongs to."
        )
    return parts


def _load_by_address(
    frame: Frame, op: Op, pointer: Pointer, mask: Tensor | None, other: Tensor
) -> Tensor:
    result = other
    shape = op.types[0].shape
    for buffer, part, part_mask in by_buffer(frame, op, pointer, mask):
        count = int(expand_all(frame, part_mask, shape).sum())
        frame.machine.count(op, buffer, "loaded", count, part.dtype.itemsize)
        found = dense(_read(frame, op, part, part_mask, other))
        assert isinstance(found, torch.Tensor)
        result = torch.where(part_mask, found, result)
    return result
