"""Integer tiles held as formulas: `base + Σ stepₐ·indexₐ` over the axes of the tile.

Program ids, ranges and all that kernels compute from them with +, − and × by a constant have this
form, and so have nearly all of their addresses. As a formula such a tile costs nothing to compute,
tells its range without looking at lanes, and turns a load into a strided view. `base` is one
number, or one per program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

Tensor = torch.Tensor

#: The dtypes that index arithmetic has.
INDEX_DTYPES = (torch.int32, torch.int64)


def _wrapped(number: int) -> int:
    """A number as 64 bits hold it, two's complement: addresses of no tensor may be that far off."""
    return (number + 2**63) % 2**64 - 2**63


def _sum(a: int | Tensor, b: int | Tensor, sign: int) -> int | Tensor:
    """a + sign·b; exact of two numbers, as 64 bits hold it of tensors."""
    if isinstance(a, int) and isinstance(b, int):
        return a + sign * b
    left, right = (_wrapped(x) if isinstance(x, int) else x for x in (a, b))
    return left + right if sign == 1 else left - right


@dataclass(frozen=True)
class Affine:
    """An integer tile as a formula.

    dtype: what the kernel thinks it is. base: int, or int64 tensor (P,). low, high: bounds of base.
    steps, sizes: per axis of the tile; an axis along which the value does not change has step 0,
    size 1. moved_from: another formula, and by how much this one's base is above it everywhere.
    """

    dtype: torch.dtype
    base: int | Tensor
    low: int
    high: int
    steps: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    moved_from: tuple[Affine, int] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """What is found out about this formula elsewhere, and holds for those moved from it."""
        return {}

    @property
    def uniform(self) -> int | None:
        """The value if it is one number for all programs and lanes."""
        return self.base if isinstance(self.base, int) and not any(self.steps) else None

    @cached_property
    def lowest(self) -> int:
        """A lower bound of all lanes."""
        return self.low + sum(
            min(0, s * (n - 1)) for s, n in zip(self.steps, self.sizes, strict=True)
        )

    @cached_property
    def highest(self) -> int:
        """An upper bound of all lanes."""
        return self.high + sum(
            max(0, s * (n - 1)) for s, n in zip(self.steps, self.sizes, strict=True)
        )

    @cached_property
    def dense(self) -> Tensor:
        """The lanes, (1 or P, *sizes), in the kernel's dtype."""
        rank = len(self.steps)
        base = self.base
        total = (torch.tensor([_wrapped(base)]) if isinstance(base, int) else base).reshape(
            -1, *(1,) * rank
        )
        for axis, (step, size) in enumerate(zip(self.steps, self.sizes, strict=True)):
            if step:
                line = torch.arange(size) * _wrapped(step)
                total = total + line.reshape(*(-1 if a == axis else 1 for a in range(rank)))
        return total.to(self.dtype)

    def fits(self) -> Affine | None:
        """Itself, unless a lane may leave the dtype's range, where the kernel's integers wrap."""
        limits = torch.iinfo(self.dtype)
        return self if limits.min <= self.lowest and self.highest <= limits.max else None

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """self + sign·other, of the same rank, without regard to wrapping."""
        low, high = (other.low, other.high) if sign == 1 else (-other.high, -other.low)
        return Affine(
            self.dtype,
            _sum(self.base, other.base, sign),
            self.low + low,
            self.high + high,
            tuple(a + sign * b for a, b in zip(self.steps, other.steps, strict=True)),
            tuple(max(m, n) for m, n in zip(self.sizes, other.sizes, strict=True)),
        ).normal()

    def times(self, factor: int) -> Affine:
        """self × factor, without regard to wrapping."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Affine(
            self.dtype,
            self.base * (factor if isinstance(self.base, int) else _wrapped(factor)),
            low,
            high,
            tuple(s * factor for s in self.steps),
            self.sizes,
        ).normal()

    def moved(self, by: int) -> Affine:
        """self + by, without regard to wrapping."""
        if by == 0:
            return self
        origin, before = self.moved_from or (self, 0)
        return Affine(
            self.dtype,
            _sum(self.base, by, 1),
            self.low + by,
            self.high + by,
            self.steps,
            self.sizes,
            (origin, before + by),
        )

    def normal(self) -> Affine:
        """With size 1 wherever the step has become 0."""
        if all(s or n == 1 for s, n in zip(self.steps, self.sizes, strict=True)):
            return self
        sizes = tuple(n if s else 1 for s, n in zip(self.steps, self.sizes, strict=True))
        return Affine(self.dtype, self.base, self.low, self.high, self.steps, sizes)

    def with_dtype(self, dtype: torch.dtype) -> Affine:
        """The same numbers in another dtype, without regard to wrapping."""
        return Affine(dtype, self.base, self.low, self.high, self.steps, self.sizes)

    def with_axes(self, steps: tuple[int, ...], sizes: tuple[int, ...]) -> Affine:
        """The same base over other axes."""
        return Affine(self.dtype, self.base, self.low, self.high, steps, sizes)

    def splat(self, rank: int) -> Affine:
        """A scalar in all lanes of a tile."""
        return self.with_axes((0,) * rank, (1,) * rank)

    def expand_dims(self, axis: int) -> Affine:
        """A new axis along which the value does not change."""
        steps = (*self.steps[:axis], 0, *self.steps[axis:])
        return self.with_axes(steps, (*self.sizes[:axis], 1, *self.sizes[axis:]))

    def transpose(self, order: tuple[int, ...]) -> Affine:
        """Axis i of the result is axis order[i]."""
        return self.with_axes(
            tuple(self.steps[i] for i in order), tuple(self.sizes[i] for i in order)
        )

    def narrow(self, index: Tensor) -> Affine:
        """The tile of the programs at the positions `index`."""
        if isinstance(self.base, int):
            return self
        base = self.base if self.base.shape[0] == 1 else self.base[index]
        return Affine(self.dtype, base, self.low, self.high, self.steps, self.sizes)


def constant(value: int, dtype: torch.dtype, rank: int = 0) -> Affine:
    """One number in every lane."""
    return Affine(dtype, value, value, value, (0,) * rank, (1,) * rank)


def per_program(value: Tensor) -> Affine | None:
    """A tensor that holds one index a program, (p, 1, …, 1), as a formula; None for any other."""
    if value.dtype not in INDEX_DTYPES or value.numel() != value.shape[0]:
        return None
    rank = value.ndim - 1
    base = value.reshape(-1).to(torch.int64)
    if base.shape[0] == 1:
        return constant(int(base), value.dtype, rank)
    low, high = torch.stack(torch.aminmax(base)).tolist()
    return Affine(value.dtype, base, low, high, (0,) * rank, (1,) * rank)


def found_in(value: Tensor) -> Affine | None:
    """The formula of a dense integer tile, if its lanes have one: looks before it computes."""
    if value.numel() == value.shape[0]:
        return per_program(value)
    rank = value.ndim - 1
    wide = value.to(torch.int64)
    first = wide[(slice(None), *(slice(0, 1) for _ in range(rank)))]
    base = per_program(first)
    assert base is not None
    steps = [0] * rank
    for axis in range(rank):
        size = wide.shape[axis + 1]
        if size > 1:
            line = wide[(0, *(slice(None) if a == axis else 0 for a in range(rank)))]
            steps[axis] = int(line[1] - line[0])
            if int(line[-1] - line[0]) != steps[axis] * (size - 1):
                return None
    sizes = tuple(n if s else 1 for s, n in zip(steps, wide.shape[1:], strict=True))
    formula = base.with_dtype(value.dtype).with_axes(tuple(steps), sizes)
    return formula if torch.equal(formula.dense.to(torch.int64).expand(wide.shape), wide) else None
