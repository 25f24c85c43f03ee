"""Keeps what the launches of one call were given and what they left: whence its numbers came.

The device that executes launches belongs to the judge, so what is kept here cannot be forged. Two
questions are asked of it. `provenance`: did a kernel load numbers that nobody may have made but a
kernel, and did a kernel store what the call returned? `replay`: what do the same launches compute
from other inputs?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mini_triton
import torch

from grader.testing.record import Record

#: A trace holds at most this many bytes of copies; a call that moves more cannot be traced.
MOST_BYTES = 128 << 20


@dataclass(frozen=True)
class Step:
    """One launch.

    Attributes:
        launch: with copies of its tensors as they were before; those that shared memory still do.
        after: of each tensor argument, by position, the elements of `reach` after the launch.
        record: what it moved.
    """

    launch: mini_triton.Launch
    after: dict[int, torch.Tensor]
    record: mini_triton.LaunchRecord

    def tensors(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Position and contents before the launch, of each argument that is a tensor."""
        for position, argument in enumerate(self.launch.args):
            if isinstance(argument, torch.Tensor):
                yield position, argument

    def moved(self, position: int) -> mini_triton.Traffic:
        """What it loaded from and stored to an argument."""
        name = self.launch.arg_names[position]
        return self.record.tensors.get(name, mini_triton.Traffic())

    def left(self, position: int) -> torch.Tensor:
        """An argument as the launch left it: of the argument's own shape."""
        view = self.launch.args[position]
        assert isinstance(view, torch.Tensor)
        return self.after[position].as_strided(view.shape, view.stride(), 0)

    def changed(self, position: int) -> torch.Tensor:
        """The elements of `reach` that hold other bits after the launch than before, as a mask."""
        view = self.launch.args[position]
        assert isinstance(view, torch.Tensor)
        old, new = (bits(tensor) for tensor in (reach(view), self.after[position]))
        return (old != new).any(1)


class Trace:
    """The launches of one call, in order.

    Args:
        inputs: the call's arguments, in nested tuples, lists and dicts.

    Attributes:
        inputs: copies of the tensors among them, in order.
        numbers: the plain numbers among them.
        steps: the launches that succeeded.
        complete: whether all are there: False once `MOST_BYTES` have been passed.
    """

    def __init__(self, inputs: Any) -> None:
        leaves = list(leaves_of(inputs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.inputs = copies(tensors)
        self.numbers = [float(leaf) for leaf in leaves if type(leaf) in (int, float)]
        self.steps: list[Step] = []
        self.complete = True
        self._held = 0

    def launch(
        self, device: mini_triton.Device, launch: mini_triton.Launch
    ) -> mini_triton.LaunchRecord:
        """Has `device` execute a launch, and keeps what came of it. Raises what `device` does."""
        positions = [n for n, arg in enumerate(launch.args) if isinstance(arg, torch.Tensor)]
        tensors = [launch.args[n].detach() for n in positions]  # type: ignore[union-attr]
        # An expanded tensor reaches little, but counts as what it would be if written out.
        size = 2 * sum(max(reach(tensor).nbytes, tensor.nbytes) for tensor in tensors)
        self.complete = self.complete and self._held + size <= MOST_BYTES
        if not self.complete:
            return device.launch(launch)
        self._held += size
        args = list(launch.args)
        for position, copy in zip(positions, copies(tensors), strict=True):
            args[position] = copy
        places = dict(zip(positions, (tensor.data_ptr() for tensor in tensors), strict=True))
        before = mini_triton.Launch(
            launch.kernel,
            launch.ttir,
            launch.grid,
            args,
            list(launch.arg_names),
            pointed_to=launch.pointed_to,
            addresses=places | launch.addresses,
        )
        record = device.launch(launch)
        after = {n: reach(tensor).clone() for n, tensor in zip(positions, tensors, strict=True)}
        self.steps.append(Step(before, after, record))
        return record


def leaves_of(value: Any) -> Iterator[Any]:
    """What lies in nested tuples, lists and dicts, in order."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves_of(item)
    elif isinstance(value, dict):
        yield from leaves_of(list(value.values()))
    elif isinstance(value, Record):
        yield from leaves_of(list(value.fields.values()))
    else:
        yield value


def reach(tensor: torch.Tensor) -> torch.Tensor:
    """All elements that a kernel with the tensor's pointer can get at, flat: from the first to the
    last, those between rows that are no elements of the tensor included."""
    tensor = tensor.detach()
    if tensor.numel() == 0:
        return tensor.new_empty(0)
    axes = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * step for size, step in axes)
    return tensor.as_strided((1 + last,), (1,))


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies with the same sizes and strides; tensors that share memory share it here, too."""
    spans: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        flat = reach(tensor)
        start = int(flat.storage_offset()) * flat.element_size()
        low, high = spans.get(_memory(tensor), (start, start))
        spans[_memory(tensor)] = (min(low, start), max(high, start + flat.nbytes))
    storages: dict[int, tuple[int, torch.UntypedStorage]] = {}
    result = []
    for tensor in tensors:
        low, high = spans[_memory(tensor)]
        low -= low % 16  # a multiple of every element's size
        if _memory(tensor) not in storages:
            source = torch.empty(0, dtype=torch.uint8)
            source.set_(tensor.untyped_storage(), low, (high - low,), (1,))
            storages[_memory(tensor)] = low, source.clone().untyped_storage()
        low, storage = storages[_memory(tensor)]
        offset = tensor.storage_offset() - low // tensor.element_size()
        copy = torch.empty(0, dtype=tensor.dtype)
        if tensor.numel():
            copy.set_(storage, offset, tensor.shape, tensor.stride())
        else:
            copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        result.append(copy)
    return result


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def bits(flat: torch.Tensor) -> torch.Tensor:
    """(n,) of any dtype → (n, bytes an element) uint8, to compare NaN with NaN."""
    return flat.contiguous().view(torch.uint8).view(-1, flat.element_size())


def numbers(flat: torch.Tensor) -> torch.Tensor:
    """The numbers in a flat tensor of any dtype, as float64; a complex one holds two."""
    return (torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat).double()
