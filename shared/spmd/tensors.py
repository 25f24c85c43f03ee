"""Between the arrays that a program has and the tensors that a backend takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

#: Numbers that backends cannot add, and what is added in their place: their bits taken for other
#: numbers (a complex number is two real ones, and sums of whole numbers wrap round alike with and
#: without a sign), …
_TAKEN_FOR = {
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}
#: … or wider ones.
_WIDENED_TO = {torch.int16: torch.int32, torch.uint16: torch.int32}


def dtype_name(array: Any) -> str:
    """The dtype of an array or a tensor, as both call it: "float32"."""
    return str(array.dtype).removeprefix("torch.")


def problem(array: Any, sums: bool) -> str:
    """What is wrong with an array that was given, beginning with a verb, or ""."""
    if not isinstance(array, np.ndarray | torch.Tensor):
        return f"is a {type(array).__name__}; give a numpy array or a torch tensor"
    if array.ndim != 1:
        return f"has shape {tuple(array.shape)}; give 1-D arrays: x.ravel()"
    if isinstance(array, np.ndarray):
        try:
            _torch_dtype(array.dtype)
        except (TypeError, ValueError):
            return f"is of {array.dtype}, which torch does not have"
    if sums and dtype_name(array) == "bool":
        return "is of bool; sums need numbers"
    return ""


def _torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype


def to_tensor(array: Any, device: torch.device) -> torch.Tensor:
    """A copy of a 1-D array or tensor, contiguous, on a device."""
    if isinstance(array, np.ndarray):
        # Copied by numpy, which minds neither negative strides nor memory that is read-only.
        memory = torch.empty(array.shape, dtype=_torch_dtype(array.dtype))
        memory.numpy()[:] = array
        return memory.to(device)
    own = torch.empty(array.shape, dtype=array.dtype, device=device)
    return own.copy_(array.detach())


def like(tensor: torch.Tensor, given: Any) -> Any:
    """A tensor as what was given: a numpy array, or a tensor on that one's device."""
    return tensor.cpu().numpy() if isinstance(given, np.ndarray) else tensor.to(given.device)


def summable(tensor: torch.Tensor) -> torch.Tensor:
    """A 1-D tensor as numbers that every backend can add; `summed` takes it back.

    A number may become two, so that blocks stay blocks.
    """
    if tensor.dtype in _TAKEN_FOR:
        return tensor.view(_TAKEN_FOR[tensor.dtype])
    return tensor.to(_WIDENED_TO.get(tensor.dtype, tensor.dtype))


def summed(total: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A sum of what `summable` made of tensors of `dtype`, as one of `dtype`."""
    return total.view(dtype) if dtype in _TAKEN_FOR else total.to(dtype)
