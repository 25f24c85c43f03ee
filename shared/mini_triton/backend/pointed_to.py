"""Tensors that a kernel reaches by addresses in memory: a grouped product's lists of matrices.

On a GPU any address works. Here a kernel reaches tensors of its launch only, so those whose
addresses its arguments hold become part of it: they are looked for among the process's tensors.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import torch

#: What tells of a kernel that makes pointers of numbers, or loads them.
_SIGNS = ("tt.int_to_ptr", "!tt.ptr<!tt.ptr<")
#: Elements of an argument that may be addresses; a longer tensor is data.
_MOST_ADDRESSES = 65_536


def by_address(ttir: str) -> bool:
    """True for a kernel that may use addresses of tensors that are no arguments."""
    return any(sign in ttir for sign in _SIGNS)


def pointed_to(names: list[str], args: list[Any]) -> dict[str, torch.Tensor]:
    """The tensors whose memory holds an address that is among the arguments, by a name.

    The name is that of the place of the first such address: `group_a_ptrs[2]`.
    """
    places: dict[int, str] = {}
    for name, arg in zip(names, args, strict=True):
        if isinstance(arg, int) and not isinstance(arg, bool):
            places.setdefault(arg, f"{name}[0]")
        elif _holds_addresses(arg):
            for index, address in enumerate(arg.detach().flatten().tolist()):
                places.setdefault(address, f"{name}[{index}]")
    wanted = np.array(sorted(place for place in places if 4096 <= place < 2**63), dtype=np.int64)
    if not len(wanted):
        return {}
    given = {_span(arg) for arg in args if isinstance(arg, torch.Tensor)}
    best: dict[int, tuple[tuple[int, ...], torch.Tensor]] = {}
    for start, end, tensor in _tensors():
        for address in wanted[
            np.searchsorted(wanted, start) : np.searchsorted(wanted, end)
        ].tolist():
            fit = _fit(address, start, end, tensor)
            if address not in best or fit > best[address][0]:
                best[address] = fit, tensor
    found: dict[str, torch.Tensor] = {}
    reached = set(given)
    for address, (_, tensor) in sorted(best.items(), key=lambda item: item[0]):
        if _span(tensor) not in reached:
            found[places[address]] = tensor
            reached.add(_span(tensor))
    return found


def _fit(address: int, start: int, end: int, tensor: torch.Tensor) -> tuple[int, ...]:
    """How surely an address is meant for a tensor, of those whose memory it is in.

    One that begins there, rather than one that something larger was read into; not its raw bytes;
    the whole of it rather than a part.
    """
    return (start == address, tensor.dtype is not torch.uint8, end - start, tensor.element_size())


def _holds_addresses(arg: Any) -> bool:
    return (
        isinstance(arg, torch.Tensor)
        and arg.dtype in (torch.int64, torch.uint64)
        and arg.numel() <= _MOST_ADDRESSES
    )


def _tensors() -> list[tuple[int, int, torch.Tensor]]:
    """(first byte, after the last, tensor) of all dense CPU tensors of the process."""
    found = []
    for item in gc.get_objects():
        kind = type(item)
        if kind is not torch.Tensor and kind is not torch.nn.Parameter:
            continue
        if item.device.type != "cpu" or item.layout != torch.strided or item.numel() == 0:
            continue
        try:
            found.append((*_span(item), item))
        except RuntimeError:  # one without memory, as torch's transforms make them
            continue
    return found


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses of its first byte and after its last."""
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + span * tensor.element_size()
