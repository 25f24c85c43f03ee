"""Integer tiles held as formulas: `start + Σ factorₜ·coordinateₜ + Σ stepₐ·indexₐ`.

Program ids, ranges and all that kernels compute from them with +, − and × by a constant have this
form, and so have nearly all of their addresses: a part that differs between programs (`coordinate`)
and a step along each axis of the tile. As a formula such a tile costs nothing to compute, tells its
range without looking at lanes, and turns a load into a strided view.
"""

from __future__ import annotations

import torch

from mini_triton.execute.tiles.coordinate import Coordinate, Terms, added

Tensor = torch.Tensor

#: The dtypes that index arithmetic has.
INDEX_DTYPES = (torch.int32, torch.int64)
#: Signs of formulas beyond this are left to lanes: numbers of programs are int64, and would wrap.
_FAR = 2**61
_LIMITS = {
    torch.int32: (-(2**31), 2**31 - 1),
    torch.int64: (-(2**63), 2**63 - 1),
}


def _wrapped(number: int) -> int:
    """A number as 64 bits hold it, two's complement: addresses of no tensor may be that far off."""
    return (number + 2**63) % 2**64 - 2**63


class Affine:
    """An integer tile as a formula; nobody changes one.

    Args:
        dtype: what the kernel thinks it is.
        base: what stands before the steps: one number, or int64 (P,), one a program.
        low: a lower bound of base.
        high: an upper bound of base.
        steps: along each axis of the tile, 0 where the value does not change.
        sizes: of the axes, 1 where the step is 0.
    """

    __slots__ = ("_bounds", "_dense", "dtype", "sizes", "start", "steps", "terms")

    def __init__(
        self,
        dtype: torch.dtype,
        base: int | Tensor,
        low: int,
        high: int,
        steps: tuple[int, ...] = (),
        sizes: tuple[int, ...] = (),
    ) -> None:
        self.dtype = dtype
        number = isinstance(base, int)
        self.start: int = base if isinstance(base, int) else 0
        self.terms: Terms = () if number else ((Coordinate(torch.as_tensor(base), low, high), 1),)
        self.steps = steps
        self.sizes = sizes
        self._bounds: tuple[int, int] | None = None
        self._dense: Tensor | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Affine) and all(
            getattr(self, name) == getattr(other, name)
            for name in ("dtype", "start", "terms", "steps", "sizes")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [str(self.start)]
        parts += [f"{factor}·{coordinate.values.tolist()}" for coordinate, factor in self.terms]
        parts += [f"{s}·[0,{n})" for s, n in zip(self.steps, self.sizes, strict=True)]
        return f"<{self.dtype} {' + '.join(parts)}>"

    @property
    def uniform(self) -> int | None:
        """The value if it is one number for all programs and lanes."""
        return None if self.terms or any(self.steps) else self.start

    @property
    def base(self) -> int | Tensor:
        """What stands before the steps: one number, or int64 (P,)."""
        total: int | Tensor = self.start
        for coordinate, factor in self.terms:
            part = coordinate.values if factor == 1 else coordinate.values * _wrapped(factor)
            total = part + (_wrapped(total) if isinstance(total, int) else total)
        return total

    @property
    def base_bounds(self) -> tuple[int, int]:
        """Bounds of `base`."""
        low = high = self.start
        for coordinate, factor in self.terms:
            if factor > 0:
                low += factor * coordinate.low
                high += factor * coordinate.high
            else:
                low += factor * coordinate.high
                high += factor * coordinate.low
        return low, high

    @property
    def bounds(self) -> tuple[int, int]:
        """Bounds of all lanes."""
        if self._bounds is None:
            low, high = self.base_bounds if self.terms else (self.start, self.start)
            for step, size in zip(self.steps, self.sizes, strict=True):
                if step > 0:
                    high += step * (size - 1)
                elif step:
                    low += step * (size - 1)
            self._bounds = (low, high)
        return self._bounds

    @property
    def lowest(self) -> int:
        """A lower bound of all lanes."""
        return self.bounds[0]

    @property
    def highest(self) -> int:
        """An upper bound of all lanes."""
        return self.bounds[1]

    @property
    def far(self) -> bool:
        """Whether a lane may be too far from 0 for its sign to be told without lanes."""
        low, high = self.bounds
        return min(low, -high) < -_FAR

    @property
    def dense(self) -> Tensor:
        """The lanes, (1 or P, *sizes), in the kernel's dtype."""
        if self._dense is None:
            rank = len(self.steps)
            base = self.base
            total = torch.tensor([_wrapped(base)]) if isinstance(base, int) else base
            total = total.reshape(-1, *(1,) * rank)
            for axis, (step, size) in enumerate(zip(self.steps, self.sizes, strict=True)):
                if step:
                    line = torch.arange(size) * _wrapped(step)
                    total = total + line.reshape(*(-1 if a == axis else 1 for a in range(rank)))
            self._dense = total.to(self.dtype)
        return self._dense

    def fits(self) -> Affine | None:
        """Itself, unless a lane may leave the dtype's range, where the kernel's integers wrap."""
        low, high = self.bounds
        least, most = _LIMITS[self.dtype]
        return self if least <= low and high <= most else None

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """self + sign·other, of the same rank, without regard to wrapping."""
        if not any(other.steps):
            steps, sizes = self.steps, self.sizes
        elif sign == 1 and not any(self.steps):
            steps, sizes = other.steps, other.sizes
        else:
            steps = tuple([a + sign * b for a, b in zip(self.steps, other.steps, strict=True)])
            sizes = tuple(
                [
                    (m if m > n else n) if step else 1
                    for m, n, step in zip(self.sizes, other.sizes, steps, strict=True)
                ]
            )
        start = self.start + other.start if sign == 1 else self.start - other.start
        return formula(self.dtype, start, added(self.terms, other.terms, sign), steps, sizes)

    def times(self, factor: int) -> Affine:
        """self × factor, without regard to wrapping."""
        if factor == 1:
            return self
        if factor == 0:
            return constant(0, self.dtype, len(self.steps))
        return formula(
            self.dtype,
            self.start * factor,
            tuple([(c, f * factor) for c, f in self.terms]),
            tuple([s * factor for s in self.steps]),
            self.sizes,
        )

    def moved(self, by: int) -> Affine:
        """self + by, without regard to wrapping."""
        if by == 0:
            return self
        return formula(self.dtype, self.start + by, self.terms, self.steps, self.sizes)

    def with_dtype(self, dtype: torch.dtype) -> Affine:
        """The same numbers in another dtype, without regard to wrapping."""
        if dtype == self.dtype:
            return self
        return formula(dtype, self.start, self.terms, self.steps, self.sizes)

    def with_axes(self, steps: tuple[int, ...], sizes: tuple[int, ...]) -> Affine:
        """The same base over other axes."""
        return formula(self.dtype, self.start, self.terms, steps, sizes)

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
            tuple([self.steps[i] for i in order]), tuple([self.sizes[i] for i in order])
        )

    def narrow(self, index: Tensor) -> Affine:
        """The tile of the programs at the positions `index`."""
        if not self.terms:
            return self
        start, terms = self.start, []
        for coordinate, factor in self.terms:
            some = coordinate.narrow(index)
            if some.low == some.high:
                start += factor * some.low
            else:
                terms.append((some, factor))
        return formula(self.dtype, start, tuple(terms), self.steps, self.sizes)


def formula(
    dtype: torch.dtype,
    start: int,
    terms: Terms,
    steps: tuple[int, ...],
    sizes: tuple[int, ...],
) -> Affine:
    """An `Affine` of these parts: what its rules make, hence quick."""
    made: Affine = _new(Affine)
    made.dtype = dtype
    made.start = start
    made.terms = terms
    made.steps = steps
    made.sizes = sizes
    made._bounds = None
    made._dense = None
    return made


_new = object.__new__


def constant(value: int, dtype: torch.dtype, rank: int = 0) -> Affine:
    """One number in every lane."""
    return formula(dtype, value, (), (0,) * rank, (1,) * rank)


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
    found = base.with_dtype(value.dtype).with_axes(tuple(steps), sizes)
    return found if torch.equal(found.dense.to(torch.int64).expand(wide.shape), wide) else None
