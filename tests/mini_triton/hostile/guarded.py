"""Runs any TTIR text on tensors that lie between guards, and checks what must hold whatever it is.

Only a `KernelError` may come of it; guards and, where it fails, tensors are as they were; and what
it stores does not depend on memory that nobody wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from mini_triton import KernelError, Launch, settings
from mini_triton.execute.machine import Machine
from mini_triton.ir.types import TORCH_DTYPE

#: Bytes before and behind each tensor, and what is in them.
GUARD, PATTERN = 4096, 0xA5
STEPS = 2_000


@dataclass(frozen=True)
class Tensor:
    """A tensor to be made: shape, dtype (as TTIR names it), and strides if it is not contiguous."""

    shape: tuple[int, ...]
    element: str
    stride: tuple[int, ...] | None = None


Argument = Tensor | int | float | None


def run(
    ttir: str, arguments: list[Argument], grid: tuple[int, int, int] = (2, 1, 1)
) -> KernelError | None:
    """Runs the program twice, on memory that is filled before use and on memory that is not.

    Returns what was raised; asserts all else.
    """
    storages: list[torch.Tensor] = []
    made = [_made(argument, storages) for argument in arguments]
    launch = Launch("forged", ttir, grid, made, [f"a{n}" for n in range(len(made))])
    before = [storage.clone() for storage in storages]
    stored: list[list[torch.Tensor]] = []
    errors: list[KernelError | None] = []
    for fill in (True, False):
        for storage, content in zip(storages, before, strict=True):
            storage.copy_(content)
        errors.append(_raised(launch, fill))
        assert errors[-1] is None or str(errors[-1]).strip(), "an error says nothing"
        stored.append([storage.clone() for storage in storages])
        for storage, content in zip(storages, before, strict=True):
            if errors[-1] is None:
                storage, content = storage.clone(), content.clone()
                storage[GUARD:-GUARD] = content[GUARD:-GUARD] = 0
            assert torch.equal(storage, content), f"other memory was changed ({errors[-1]})"
    assert type(errors[0]) is type(errors[1]), f"unwritten memory decides between {errors}"
    for one, other in zip(*stored, strict=True):
        assert torch.equal(one, other), "what it stores depends on unwritten memory"
    return errors[0]


def _raised(launch: Launch, fill: bool) -> KernelError | None:
    """What a launch raises, on memory that is filled before use or not."""
    torch.use_deterministic_algorithms(fill)
    try:
        with settings.use(steps=STEPS, threads=1):
            Machine(launch, show=lambda line: None).run()
    except KernelError as error:
        return error
    finally:
        torch.use_deterministic_algorithms(False)
    return None


def _made(argument: Argument, storages: list[torch.Tensor]) -> torch.Tensor | int | float | None:
    if not isinstance(argument, Tensor):
        return argument
    dtype = TORCH_DTYPE[argument.element]
    stride = argument.stride or torch.empty(argument.shape, device="meta").stride()
    elements = 1 + sum((n - 1) * s for n, s in zip(argument.shape, stride, strict=True))
    storage = torch.full((2 * GUARD + elements * dtype.itemsize,), PATTERN, dtype=torch.uint8)
    inside = storage[GUARD:-GUARD].view(dtype)
    numbers = torch.arange(elements) % 13
    inside.copy_(numbers if dtype != torch.bool else numbers > 3)
    storages.append(storage)
    return inside.as_strided(argument.shape, stride, inside.storage_offset())
