"""Which lanes of an access are active, over all programs that run, and what the others hold."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch

from mini_triton.execute.tiles.mask import Mask
from mini_triton.execute.tiles.values import Value, count_lanes, dense
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor


def active_lanes(
    frame: Frame, mask: Value | None, shape: tuple[int, ...]
) -> tuple[Mask | Tensor | None, int]:
    """(mask, or None where it is true everywhere; how many lanes it lets through)."""
    total = count_lanes(shape, frame.count)
    if mask is None:
        return None, total
    if isinstance(mask, Mask):
        if mask.decided is not None:
            return (None, total) if mask.decided else (mask, 0)
        if len(mask.sizes) < len(shape):
            mask = mask.splat(len(shape))
        return mask, mask.count(shape, frame.count)
    lanes = dense(mask)
    assert isinstance(lanes, torch.Tensor)
    lanes = lanes.reshape(lanes.shape + (1,) * (1 + len(shape) - lanes.ndim))
    true = int(torch.count_nonzero(lanes))
    if true == lanes.numel():
        return None, total
    return lanes, true * (total // lanes.numel())


def lanes_on(mask: Mask | Tensor | None) -> Tensor | None:
    """A mask lane by lane."""
    return mask.dense if isinstance(mask, Mask) else mask


def expand_all(frame: Frame, value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The value with every axis full, the programs' too."""
    return value.expand(frame.count, *shape)


def zero(op: Op) -> Tensor:
    """What lanes hold that an operation leaves undefined, unless somebody asks what they do."""
    return _zero(op.types[0].dtype, len(op.types[0].shape))


@cache
def _zero(dtype: torch.dtype, rank: int) -> Tensor:
    return torch.zeros((1,) * (1 + rank), dtype=dtype)
