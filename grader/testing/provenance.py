"""Where a kernel's operands and a call's outputs come from: kernels, or torch on the host?

Byte budgets count what kernels move. They say nothing about a submission that computes with torch,
whose cost no kernel shows, and launches a kernel that stores a zero somewhere, or one that only
copies. So a call's launches are followed: what a kernel loads has to be an input of the call, the
work of an earlier kernel, or a constant fill; what the call returns has to be stored by a kernel.

Contents are compared by digest in logical order, so views, reshapes and contiguous copies are the
same data; a cast, a transposition or a sum on the host is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mini_triton
import torch


@dataclass(frozen=True)
class Contents:
    """What a tensor held at some moment.

    Attributes:
        digest: of dtype, count and bytes of its elements in logical order.
        constant: whether all elements are the same: a fill carries no computation.
    """

    digest: bytes
    constant: bool


def contents(tensor: torch.Tensor) -> Contents:
    """What a tensor holds now."""
    flat = tensor.detach().contiguous().reshape(-1)
    raw = flat.view(torch.uint8)
    digest = hashlib.blake2b(f"{flat.dtype} {flat.numel()} ".encode(), digest_size=20)
    digest.update(raw.numpy().data)
    table = raw.reshape(flat.numel(), flat.element_size())
    return Contents(digest.digest(), not flat.numel() or bool((table == table[0]).all()))


@dataclass(frozen=True)
class Operand:
    """A tensor argument of one launch.

    Attributes:
        kernel: the kernel's name.
        name: the argument's.
        before: what it held.
        after: what it held when the kernel had run.
        loaded: elements loaded from it.
        stored: elements stored to it.
        elements: how many it has.
    """

    kernel: str
    name: str
    before: Contents
    after: Contents
    loaded: int
    stored: int
    elements: int


def execute(device: Any, launch: mini_triton.Launch) -> tuple[Any, tuple[Operand, ...]]:
    """Has a device execute a launch; returns its record and what became of its tensors.

    Raises:
        KernelError: as the device does.
    """
    tensors = {
        name: argument
        for name, argument in zip(launch.arg_names, launch.args, strict=True)
        if isinstance(argument, torch.Tensor)
    }
    before = {name: contents(tensor) for name, tensor in tensors.items()}
    record = device.launch(launch)
    nothing = mini_triton.Traffic()
    operands = []
    for name, tensor in tensors.items():
        traffic = record.tensors.get(name, nothing)
        after = contents(tensor) if traffic.stored else before[name]
        operands.append(
            Operand(
                launch.kernel,
                name,
                before[name],
                after,
                traffic.loaded,
                traffic.stored,
                tensor.numel(),
            )
        )
    return record, tuple(operands)


def host_work(
    name: str,
    inputs: Sequence[torch.Tensor],
    operands: Sequence[Operand],
    outputs: Mapping[str, torch.Tensor],
) -> str | None:
    """Says what of a call was computed outside its kernels, or None if nothing was.

    Args:
        name: what was called.
        inputs: the tensors that it was given.
        operands: the tensor arguments of its launches, launch by launch.
        outputs: the outputs that kernels have to have stored, by name.
    """
    known = {contents(tensor).digest for tensor in inputs}
    stored: set[bytes] = set()
    for operand in operands:
        if operand.loaded and not operand.before.constant and operand.before.digest not in known:
            return (
                f"{name}: kernel {operand.kernel} loads {operand.name}, which holds neither an "
                "input nor what a kernel stored: it was computed by torch on the host"
            )
        if operand.stored:
            known.add(operand.after.digest)
        if operand.stored >= operand.elements:
            stored.add(operand.after.digest)
    for output, tensor in outputs.items():
        if contents(tensor).digest not in stored:
            return (
                f"{name}: {output} is not what a kernel stored: return the tensor that the kernel "
                "wrote, with nothing computed by torch in between"
            )
    return None
