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
    "aten::resize_",
    "aten::set_",
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
        if name not in _FREE and not _is_view(func):
            written = _written(func, args, kwargs or {}, result)
            read = _distinct(tree_leaves((args, kwargs)))
            if name in (
                "aten::zero_",
                "aten::fill_",
                "aten::copy_",
                "aten::normal_",
                "aten::uniform_",
            ):
                read = [
                    t for t in read if all(t is not w for w in written)
                ]  # overwritten, not read
            self._ops.append(
                HostOp(
                    name.removeprefix("aten::"),
                    sum(t.numel() for t in read),
                    sum(t.numel() for t in written),
                    sum(t.numel() * t.element_size() for t in read),
                    sum(t.numel() * t.element_size() for t in written),
                )
            )
        return result


def _is_view(func: Any) -> bool:
    """True if every tensor that the operation returns is a view of an argument, unwritten."""
    returns = func._schema.returns
    return bool(returns) and all(
        r.alias_info is not None and not r.alias_info.is_write for r in returns
    )


def _written(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> list[torch.Tensor]:
    """Results, and arguments that the schema says are written in place."""
    values = [*args, *kwargs.values()]
    in_place = [
        value
        for argument, value in zip(func._schema.arguments, values, strict=False)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return _distinct(tree_leaves((in_place, result)))


def _distinct(leaves: Iterable[Any]) -> list[torch.Tensor]:
    """Tensors, each memory once: two views of the same elements are one read."""
    found: dict[tuple[int, tuple[int, ...], tuple[int, ...]], torch.Tensor] = {}
    key: Callable[[torch.Tensor], Any] = lambda t: (t.data_ptr(), tuple(t.shape), t.stride())  # noqa: E731
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            found.setdefault(key(leaf), leaf)
    return list(found.values())
