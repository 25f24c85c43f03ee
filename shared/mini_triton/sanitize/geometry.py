"""Elements of one tensor as elements that another one reaches, in bytes of shared memory."""

from __future__ import annotations

import torch


def byte_address(tensor: torch.Tensor) -> int:
    """Address of the first element, within its storage's address space."""
    return tensor.untyped_storage().data_ptr() + (
        int(tensor.storage_offset()) * tensor.element_size()
    )


def reach_elements(tensor: torch.Tensor) -> int:
    """How many elements lie from the tensor's first one to its last, gaps included."""
    if not tensor.numel():
        return 0
    axes = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((size - 1) * step for size, step in axes)


def bytes_of(flags: torch.Tensor, tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """The flags of a tensor's bytes, (*shape, element size), as a view.

    Args:
        flags: one a byte of memory, bool.
        tensor: any tensor.
        offset: the byte in `flags` that belongs to its first one.
    """
    size = tensor.element_size()
    shape = (*tensor.shape, size)
    return flags.as_strided(shape, (*(step * size for step in tensor.stride()), 1), offset)


def marked(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
    """Which of the elements that `tensor` reaches `other` has, bool (n,); None if none."""
    if tensor.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        return None
    size, start = tensor.element_size(), byte_address(tensor)
    count = reach_elements(tensor)
    low = min(start, byte_address(other))
    end = byte_address(other) + reach_elements(other) * other.element_size()
    if end <= start or byte_address(other) >= start + count * size:
        return None
    flags = torch.zeros(max(end, start + count * size) - low, dtype=torch.bool)
    bytes_of(flags, other, byte_address(other) - low).fill_(True)
    marks = flags[start - low : start - low + count * size].view(count, size).any(1)
    return marks if marks.any() else None
