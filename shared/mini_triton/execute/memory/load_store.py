"""`tt.load`, `tt.store`, and both atomically: bounds first, then the copy, then the count.

An access is checked as a whole before it touches memory, and a failed launch puts back what its
earlier stores changed (`machine`). Counted are the lanes whose mask is true, over all programs that
run, whether or not lanes coincide: what the kernel asks the memory system for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from mini_triton.execute.memory.access import Windows, windows
from mini_triton.execute.memory.active import active_lanes, expand_all, lanes_on, zero
from mini_triton.execute.memory.addresses import by_buffer
from mini_triton.execute.memory.bounds import check_bounds
from mini_triton.execute.memory.observe import tell
from mini_triton.execute.registry import framed
from mini_triton.execute.tiles.mask import Box, Mask
from mini_triton.execute.tiles.shared_tiles import Shared
from mini_triton.execute.tiles.values import Buffer, Pointer, Value, dense
from mini_triton.ir.program import Op
from mini_triton.ir.types import INTEGER_OF_SIZE

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor

#: A mask in more boxes than this is cheaper to apply lane by lane.
_MOST_BOXES = 8


@framed("tt.load", "tt.atomic_load")
def _load(frame: Frame, op: Op) -> Tensor | Shared:
    pointer = frame[op.operands[0]]
    assert isinstance(pointer, Pointer)
    shape = op.types[0].shape
    mask, active = active_lanes(frame, _operand(frame, op, 1), shape)
    if mask is None:
        other = None
    elif len(op.operands) > 2:
        other = frame.tensor(op.operands[2])
    else:
        other = frame.machine.undefined(op)
    if active == 0:
        return zero(op) if other is None else other
    if pointer.buffer is None:
        return _load_by_address(frame, op, pointer, mask, zero(op) if other is None else other)
    frame.machine.count(op, pointer.buffer, "loaded", active, pointer.dtype.itemsize)
    return _read(frame, op, pointer, mask, other)


def _load_by_address(
    frame: Frame, op: Op, pointer: Pointer, mask: Mask | Tensor | None, other: Tensor
) -> Tensor:
    result = other
    shape = op.types[0].shape
    for buffer, part, part_mask in by_buffer(frame, op, pointer, lanes_on(mask)):
        count = int(expand_all(frame, part_mask, shape).sum())
        frame.machine.count(op, buffer, "loaded", count, part.dtype.itemsize)
        found = dense(_read(frame, op, part, part_mask, other))
        assert isinstance(found, torch.Tensor)
        result = torch.where(part_mask, found, result)
    return result


@framed("tt.store", "tt.atomic_store")
def _store(frame: Frame, op: Op) -> None:
    pointer = frame[op.operands[0]]
    assert isinstance(pointer, Pointer)
    value = frame.tensor(op.operands[1])
    shape = op.operand_types[0].shape
    mask, active = active_lanes(frame, _operand(frame, op, 2), shape)
    if active == 0:
        return
    if pointer.buffer is None:
        for buffer, part, part_mask in by_buffer(frame, op, pointer, lanes_on(mask)):
            count = int(expand_all(frame, part_mask, shape).sum())
            frame.machine.count(op, buffer, "stored", count, part.dtype.itemsize)
            _write(frame, op, part, part_mask, value, shape)
        return
    frame.machine.count(op, pointer.buffer, "stored", active, pointer.dtype.itemsize)
    _write(frame, op, pointer, mask, value, shape)


def _operand(frame: Frame, op: Op, number: int) -> Value | None:
    return frame[op.operands[number]] if len(op.operands) > number else None


def _read(
    frame: Frame, op: Op, pointer: Pointer, mask: Mask | Tensor | None, other: Tensor | None
) -> Tensor | Shared:
    """A tile; `other` is there wherever a mask is."""
    buffer = pointer.buffer
    assert buffer is not None
    flat = buffer.as_dtype(pointer.dtype)
    if frame.machine.observers:
        tell(frame, op, "load", pointer, lanes_on(mask), op.types[0].shape)
    if op.shares:
        found = windows(pointer, shared=True)
        if found is not None and found.sharing is not None:
            tiles = _read_windows(frame, op, found, buffer, flat, mask, other)
            if tiles is not None:
                return Shared(tiles, found.sharing)
    found = windows(pointer)
    if found is not None:
        tiles = _read_windows(frame, op, found, buffer, flat, mask, other)
        if tiles is not None:
            return tiles
    offsets, on = pointer.lanes, lanes_on(mask)
    check_bounds(frame, op, buffer, offsets, on, flat.numel(), "loads")
    if on is not None:
        offsets = torch.where(on, offsets, torch.zeros_like(offsets))
    carrier = INTEGER_OF_SIZE[flat.element_size()] if flat.dtype.itemsize == 1 else flat.dtype
    loaded = flat.view(carrier)[offsets].view(flat.dtype)
    return loaded if on is None or other is None else torch.where(on, loaded, other)


def _read_windows(
    frame: Frame,
    op: Op,
    found: Windows,
    buffer: Buffer,
    flat: Tensor,
    mask: Mask | Tensor | None,
    other: Tensor | None,
) -> Tensor | None:
    """Loads through strided views, where all that they reach is inside; else None.

    The tiles are one a window.
    """
    if isinstance(mask, Mask):
        assert other is not None
        read = _read_boxes(frame, found, flat, mask, other, op.types[0].shape)
        if read is not None:
            return read
    if not found.within(flat.numel()):
        return None
    if mask is None:
        loaded = found.read(flat)
        return loaded.clone() if buffer.stored_to and found.one_view else loaded
    on = lanes_on(mask)
    assert on is not None and other is not None
    if found.sharing is not None and max(len(on), len(other)) > 1:
        return None
    return torch.where(on, found.read(flat), other)


def _read_boxes(
    frame: Frame, found: Windows, flat: Tensor, mask: Mask, other: Tensor, shape: tuple[int, ...]
) -> Tensor | None:
    """A load box by box; None where that is not the way."""
    boxes = mask.boxes(frame.count, _MOST_BOXES)
    if boxes is None:
        return None
    cuts = [found.cut(box) for box in boxes]
    if not all(cut.within(flat.numel()) for cut in cuts):
        return None
    alike = len(other) == 1 and len(boxes) == 1 and boxes[0].end - boxes[0].start == frame.count
    if found.sharing is not None and not alike:
        return None
    used = zip(shape, found.size, mask.sizes, other.shape[1:], strict=True)
    tile = tuple([n if max(sizes) > 1 else 1 for n, *sizes in used])
    result = flat.new_empty((found.programs if alike else frame.count, *tile))
    if not alike or not _fill_around(result, boxes[0], other):
        result.copy_(other)
    for box, cut in zip(boxes, cuts, strict=True):
        part = result if alike else result[box.start : box.end]
        for axis, bounds in enumerate(box.ranges):
            if bounds is not None:
                part = part.narrow(axis + 1, bounds[0], bounds[1] - bounds[0])
        cut.read_into(flat, part)
    return result


def _fill_around(result: Tensor, box: Box, other: Tensor) -> bool:
    """Fills what lies before and behind a box along its only bounded axis, if it has just one."""
    bounded = [axis for axis, bounds in enumerate(box.ranges) if bounds is not None]
    if len(bounded) != 1:
        return False
    axis = bounded[0] + 1
    first, last = box.ranges[bounded[0]] or (0, 0)
    for start, end in ((0, first), (last, result.shape[axis])):
        if start < end:
            some = other if other.shape[axis] == 1 else other.narrow(axis, start, end - start)
            result.narrow(axis, start, end - start).copy_(some)
    return True


def _write(
    frame: Frame,
    op: Op,
    pointer: Pointer,
    mask: Mask | Tensor | None,
    value: Tensor,
    shape: tuple[int, ...],
) -> None:
    buffer = pointer.buffer
    assert buffer is not None
    flat = buffer.as_dtype(pointer.dtype)
    if frame.machine.observers:
        tell(frame, op, "store", pointer, lanes_on(mask), shape, value)
    found = windows(pointer)
    if (
        found is not None
        and not isinstance(mask, torch.Tensor)
        and _write_windows(frame, found, flat, mask, value, shape)
    ):
        return
    on = lanes_on(mask)
    offsets = expand_all(frame, pointer.lanes, shape)
    check_bounds(frame, op, buffer, offsets, on, flat.numel(), "stores")
    values = expand_all(frame, value, shape)
    if on is not None:
        keep = expand_all(frame, on, shape)
        offsets, values = offsets[keep], values[keep]
    carrier = INTEGER_OF_SIZE[flat.element_size()]
    target = flat.view(carrier).numpy()
    places, numbers = (offsets.reshape(-1).numpy(), values.contiguous().view(carrier).reshape(-1))

    def write() -> None:
        # numpy assigns in order: of programs that store to one element, the last one wins, always.
        target[places] = numbers.numpy()

    frame.machine.stores.add(write, places.nbytes + numbers.nbytes)


def _write_windows(
    frame: Frame,
    found: Windows,
    flat: Tensor,
    mask: Mask | None,
    value: Tensor,
    shape: tuple[int, ...],
) -> bool:
    """Stores through strided views where that is right; False leaves it to the general way.

    Where programs store to the same elements, the last one in grid order wins, here as there.
    """
    if not found.distinct_lanes(shape):
        return False
    everything = [Box(0, frame.count, (None,) * len(shape))]
    boxes = everything if mask is None else mask.boxes(frame.count, _MOST_BOXES)
    if boxes is None:
        return False
    writers = []
    for box in boxes:
        cut = found.cut(box)
        writer = cut.writer() if cut.within(flat.numel()) else None
        if writer is None:
            return False
        writers.append(writer)
    held = min(value.untyped_storage().nbytes(), value.numel() * value.element_size())
    for box, writer in zip(boxes, writers, strict=True):
        part = value[box.start : box.end] if value.shape[0] > 1 else value
        for axis, bounds in enumerate(box.ranges):
            if bounds is not None and value.shape[axis + 1] > 1:
                part = part.narrow(axis + 1, bounds[0], bounds[1] - bounds[0])
        frame.machine.stores.add(partial(writer, flat, part), held)
    return True
