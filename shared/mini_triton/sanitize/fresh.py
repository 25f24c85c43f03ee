"""Which memory of the host nobody has written yet: what came from `torch.empty` and its kin.

While a `FreshMemory` is active, such a tensor's elements count as unwritten until an operation on
the host writes them, or a kernel does. Whatever cannot be told counts as written: an element also
has to hold the very bits that it was given when it was allocated (NaN; the largest integer), so
that what numpy writes, say, is not missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from mini_triton.host import is_view, moved
from mini_triton.sanitize.geometry import byte_address, bytes_of, reach_elements
from mini_triton.sanitize.shadow import bits

_ALLOCATIONS = {
    "aten::empty",
    "aten::empty_like",
    "aten::empty_permuted",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::new_empty_strided",
}
#: What memory is given by torch itself where it has to be the same at every run: NaN, and the
#: largest integer.
_FILLED = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)
#: Operations after which a storage is not what it was.
_UNSETTLING = {"aten::resize_", "aten::resize_as_", "aten::set_"}
#: With so many known storages, those that are gone are looked for.
_MANY = 256


@dataclass
class _Memory:
    """A storage with unwritten bytes: `flags`, one a byte; None while all of them are."""

    storage: StorageWeakRef
    nbytes: int
    flags: torch.Tensor | None = None


_known: dict[int, _Memory] = {}
_active = 0


class FreshMemory(TorchDispatchMode):
    """Keeps track of unwritten memory in a region."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to be skipped, torch.compile would have to be imported, which takes seconds."""
        return False

    def __enter__(self) -> Any:
        global _active
        _active += 1
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        global _active
        super().__exit__(*error)
        _active -= 1
        if not _active:  # what is written from now on would not be seen
            _known.clear()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs the operation, then notes what it has allocated or written."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name in _ALLOCATIONS:
            _allocated(result)
        elif _known and not is_view(func):
            written = moved(func, args, kwargs or {})[1]
            unknown = name in _UNSETTLING or not name.startswith("aten::")
            for leaf in tree_leaves([args, kwargs, result] if unknown else written):
                if isinstance(leaf, torch.Tensor):
                    _written(leaf, whole=unknown)
        return result


def _plain(tensor: Any) -> bool:
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
    )


def _allocated(tensor: Any) -> None:
    if not _plain(tensor) or not tensor.numel() or tensor.dtype not in _FILLED:
        return
    storage = tensor.untyped_storage()
    with _disable_current_modes():
        _flat(tensor).fill_(_filler(tensor.dtype)[0])
    if len(_known) >= _MANY:
        for key in [key for key, memory in _known.items() if memory.storage.expired()]:
            del _known[key]
    _known[storage._cdata] = _Memory(StorageWeakRef(storage), storage.nbytes())


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """All that a tensor reaches, flat: its elements, and those between them."""
    return tensor.detach().as_strided((reach_elements(tensor),), (1,))


def _of(tensor: torch.Tensor) -> _Memory | None:
    """What is known of a tensor's memory, None if all of it is written."""
    if not _plain(tensor):
        return None
    storage = tensor.untyped_storage()
    memory = _known.get(storage._cdata)
    if memory is not None and (memory.storage.expired() or memory.nbytes != storage.nbytes()):
        del _known[storage._cdata]
        return None
    return memory


def _offset(tensor: torch.Tensor) -> int:
    return byte_address(tensor) - tensor.untyped_storage().data_ptr()


def _written(tensor: torch.Tensor, whole: bool = False) -> None:
    """Notes that a tensor's elements, or all of its storage, are written."""
    memory = _of(tensor)
    if memory is None:
        return
    key = tensor.untyped_storage()._cdata
    if whole or tensor.numel() * tensor.element_size() >= memory.nbytes:
        del _known[key]
        return
    if memory.flags is None:
        memory.flags = torch.ones(memory.nbytes, dtype=torch.bool)
    bytes_of(memory.flags, tensor, _offset(tensor)).fill_(False)
    if not memory.flags.any():
        del _known[key]


def unwritten(args: Sequence[Any]) -> dict[int, torch.Tensor]:
    """Which of the elements that each argument reaches are unwritten, bool (n,), by position."""
    found: dict[int, torch.Tensor] = {}
    for position, argument in enumerate(args if _known else ()):
        if not isinstance(argument, torch.Tensor) or (memory := _of(argument)) is None:
            continue
        if argument.dtype not in _FILLED:
            continue
        count, size = reach_elements(argument), argument.element_size()
        marks = bits(_flat(argument)) == bits(_filler(argument.dtype))
        if memory.flags is not None:
            start = _offset(argument)
            marks &= memory.flags[start : start + count * size].view(count, size).any(1)
        if marks.any():
            found[position] = marks
    return found


def _filler(dtype: torch.dtype) -> torch.Tensor:
    """What an element of fresh memory holds."""
    if dtype.is_floating_point:
        return torch.tensor([float("nan")]).to(dtype)
    return torch.tensor([True if dtype is torch.bool else torch.iinfo(dtype).max], dtype=dtype)


def settle(args: Sequence[Any], left: dict[int, torch.Tensor]) -> None:
    """Notes what a launch has left unwritten, where it has said so; else that all is written."""
    if not _known:
        return
    for position, argument in enumerate(args):
        if not isinstance(argument, torch.Tensor) or (memory := _of(argument)) is None:
            continue
        marks = left.get(position)
        count, size = reach_elements(argument), argument.element_size()
        if memory.flags is None:
            memory.flags = torch.ones(memory.nbytes, dtype=torch.bool)
        start = _offset(argument)
        part = memory.flags[start : start + count * size].view(count, size)
        part &= False if marks is None else marks[:, None]
        if not memory.flags.any():
            del _known[argument.untyped_storage()._cdata]
