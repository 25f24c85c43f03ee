"""Counts what torch operations on the host side move, apart from kernels.

Each distinct tensor that an operation reads is loaded once and each that it writes is stored once,
at its logical size; views and allocations are free. So an unfused PyTorch baseline, or the final
`dg.sum(0)` of a kernel, has its price in the same currency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

#: Operations that make a tensor without writing it, or only look at its shape.
_FREE = {
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::empty_permuted",
    "aten::new_empty",
    "aten::new_empty_strided",
    "aten::detach",
    "aten::alias",
    "aten::lift_fresh",
    "aten::_local_scalar_dense",
    "aten::_reshape_alias",
    "aten::_unsafe_view",
    "aten::unsafe_split",
    "aten::resize_",
    "aten::set_",
}
#: Operations that write their first argument without reading it.
_OVERWRITES = {
    "aten::bernoulli_",
    "aten::cauchy_",
    "aten::copy_",
    "aten::exponential_",
    "aten::fill_",
    "aten::geometric_",
    "aten::log_normal_",
    "aten::normal_",
    "aten::random_",
    "aten::uniform_",
    "aten::zero_",
}


@dataclass(frozen=True)
class HostOp:
    """One torch operation: its name, and elements and bytes loaded and stored."""

    name: str
    loaded: int
    stored: int
    loaded_bytes: int
    stored_bytes: int


class HostCounter(TorchDispatchMode):
    """Appends a `HostOp` to `ops` for every torch operation that moves data."""

    def __init__(self, ops: list[HostOp]) -> None:
        super().__init__()
        self._ops = ops

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to be skipped, torch.compile would have to be imported, which takes seconds."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs the operation, then counts it from its schema and its tensors."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name not in _FREE and not is_view(func):
            read, written = moved(func, args, kwargs or {})
            self._ops.append(
                HostOp(
                    name.removeprefix("aten::"),
                    *_elements_and_bytes(_distinct(read), _distinct([*written, result])),
                )
            )
        return result


def is_view(func: Any) -> bool:
    """True if every tensor that the operation returns is a view of an argument, unwritten."""
    returns = func._schema.returns
    return bool(returns) and all(
        r.alias_info is not None and not r.alias_info.is_write for r in returns
    )


def moved(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Arguments that the operation reads, and those that its schema says it writes in place."""
    schema = func._schema
    by_name = {argument.name: argument for argument in schema.arguments}
    bound = [*zip(schema.arguments, args, strict=False)]
    bound += [(by_name[name], value) for name, value in kwargs.items()]
    read, written = [], []
    for argument, value in bound:
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if writes:
            written.append(value)
        overwritten = argument.is_out or schema.name in _OVERWRITES
        if not (writes and overwritten):
            read.append(value)
    return read, written


def _elements_and_bytes(
    read: list[torch.Tensor], written: list[torch.Tensor]
) -> tuple[int, int, int, int]:
    """(loaded, stored, loaded bytes, stored bytes)."""
    return (
        sum(t.numel() for t in read),
        sum(t.numel() for t in written),
        sum(t.numel() * t.element_size() for t in read),
        sum(t.numel() * t.element_size() for t in written),
    )


def _distinct(values: Iterable[Any]) -> list[torch.Tensor]:
    """Tensors, each memory once: two views of the same elements are one read."""
    found: dict[tuple[int, tuple[int, ...], tuple[int, ...]], torch.Tensor] = {}
    key: Callable[[torch.Tensor], Any] = lambda t: (t.data_ptr(), tuple(t.shape), t.stride())  # noqa: E731
    for leaf in tree_leaves(list(values)):
        if isinstance(leaf, torch.Tensor):
            found.setdefault(key(leaf), leaf)
    return list(found.values())
