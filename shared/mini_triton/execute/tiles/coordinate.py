"""Numbers that programs differ by: what index formulas are sums of.

A coordinate holds one integer a program: a program id, or a number computed from one by an
operation that formulas do not have (`pid // n`). Formulas keep coordinates by name, so that adding
and subtracting them looks at no program, and only the places in memory that come out of them do.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property

import numpy as np
import torch

from mini_triton.execute.tiles.shared_tiles import Sharing, sharing

Tensor = torch.Tensor

#: (coordinate, factor) pairs whose sum is the part of a formula that differs between programs.
Terms = tuple[tuple["Coordinate", int], ...]
#: (count, step) pairs, slowest first: program i's number is the first one's plus Σ digit·step.
Digits = tuple[tuple[int, int], ...]
_UNKNOWN: Digits = ((-1, 0),)
_numbering = itertools.count()


class Coordinate:
    """One integer a program: `values`, int64 (P,), between `low` and `high`."""

    __slots__ = ("_digits", "_narrowed", "high", "low", "number", "spreads", "values")

    def __init__(self, values: Tensor, low: int, high: int) -> None:
        self.values = values
        self.low = low
        self.high = high
        self.number = next(_numbering)  # no other coordinate's
        # Of sums that begin with this coordinate, by the numbers and factors of their terms. Not by
        # the terms: a cycle of references would live on after the launch, until Python looks for
        # such, and hold pieces of the memory in which the next launch wants to have its tiles.
        self.spreads: dict[tuple[tuple[int, int], ...], Spread] = {}
        self._digits: Digits | None = _UNKNOWN
        self._narrowed: tuple[Tensor, Coordinate] | None = None

    def narrow(self, index: Tensor) -> Coordinate:
        """Of the programs at the positions `index`; asked again for them, the same one."""
        if self.values.shape[0] == 1:
            return self
        if self._narrowed is None or self._narrowed[0] is not index:
            some = self.values.index_select(0, index)
            # A coordinate that cannot differ is a number of the formula: bounds must be exact then.
            low, high = (int(some), int(some)) if some.numel() == 1 else (self.low, self.high)
            self._narrowed = (index, Coordinate(some, low, high))
        return self._narrowed[1]

    @property
    def digits(self) -> Digits | None:
        """How the values go up over the programs, None if irregularly."""
        if self._digits is _UNKNOWN:
            self._digits = _digits_of(self.values.numpy())
        return self._digits


def _digits_of(values: np.ndarray) -> Digits | None:
    if len(values) == 1:
        return ()
    apart = values[1:] - values[:-1]
    step = int(apart[0])
    breaks = apart != step
    inner = int(breaks.argmax()) + 1
    if inner == 1 and not breaks[0]:
        return ((len(values), step),)
    if len(values) % inner or inner == 1:
        return None
    rows = values.reshape(-1, inner)
    if not (rows[:, 1:] - rows[:, :-1] == step).all():
        return None
    slower = _digits_of(rows[:, 0])
    return None if slower is None else (*slower, (inner, step))


class Spread:
    """How a sum of terms differs between programs.

    Attributes:
        count: how many numbers there are: one a program.
        first: the first of them.
        digits: how the others go up from it; None if irregularly.
        sharing: if these are the distinct ones only, which program has which.
    """

    def __init__(
        self, values: np.ndarray, digits: Digits | None, sharing: Sharing | None = None
    ) -> None:
        self._values = values
        self.count = len(values)
        self.first = int(values[0])
        rising = digits is not None and all(step >= 0 for _, step in digits)
        self.digits = digits if rising else None
        self.sharing = sharing

    @cached_property
    def numbers(self) -> list[int]:
        """All of them."""
        return self._values.tolist()

    @cached_property
    def distinct(self) -> Spread | None:
        """Each distinct number once, if they are at most half as many as programs."""
        if self.digits is not None:
            if all(step for _, step in self.digits):
                return None
            if _in_order(self.digits):
                return self._without_repeats(self.digits)
        values, index = np.unique(self._values, return_inverse=True)
        if len(values) == 1:
            return Spread(values, ())
        if 2 * len(values) > self.count:
            return None
        return Spread(values, _digits_of(values), sharing(len(values), index))

    def _without_repeats(self, digits: Digits) -> Spread | None:
        """`distinct` where numbers repeat because some digits have no step, and only so."""
        some = tuple([digit for digit in digits if digit[1]])
        count = math.prod([n for n, _ in some])
        if count > 1 and 2 * count > self.count:
            return None
        shape = [n for n, _ in digits]
        values = self._values.reshape(shape)[tuple([slice(None if s else 1) for _, s in digits])]
        if count == 1:
            return Spread(values.reshape(-1), ())
        index = np.broadcast_to(np.arange(count).reshape(values.shape), shape)
        return Spread(values.reshape(-1), _merged(some), sharing(count, index))


def _in_order(digits: Digits) -> bool:
    """Whether numbers with these digits, without those of no step, only go up."""
    reach = 0
    for count, step in reversed(digits):
        if step:
            if step <= reach:
                return False
            reach += step * (count - 1)
    return True


def spread_of(terms: Terms) -> Spread:
    """The `Spread` of terms, of which there is at least one."""
    known = terms[0][0].spreads
    name = tuple([(coordinate.number, factor) for coordinate, factor in terms])
    found = known.get(name)
    if found is None:
        values = sum([coordinate.values.numpy() * np.int64(factor) for coordinate, factor in terms])
        assert isinstance(values, np.ndarray)
        found = known[name] = Spread(values, _digits_of_sum(terms))
    return found


def _digits_of_sum(terms: Terms) -> Digits | None:
    """How the sum of terms goes up over the programs, slowest first; None if irregularly."""
    total: Digits = ()
    for coordinate, factor in terms:
        digits = coordinate.digits
        if digits is None:
            return None
        scaled = tuple((count, step * factor) for count, step in digits)
        joined = scaled if not total else _joined(total, scaled)
        if joined is None:
            return None
        total = joined
    return _merged(total) if len(total) > 1 else total


def _merged(digits: Digits) -> Digits:
    """The same with as few digits as can be."""
    merged: list[tuple[int, int]] = []
    for count, step in digits:
        if count == 1:
            continue
        if merged and merged[-1][1] == count * step:
            merged[-1] = (merged[-1][0] * count, step)
        else:
            merged.append((count, step))
    return tuple(merged)


def _joined(a: Digits, b: Digits) -> Digits | None:
    """The digits of a sum: those of both must break at the same programs, or only one breaks."""
    if len(a) == 1:
        a = _broken_like(a[0], b)
    elif len(b) == 1:
        b = _broken_like(b[0], a)
    if [count for count, _ in a] != [count for count, _ in b]:
        return None
    return tuple((count, x + y) for (count, x), (_, y) in zip(a, b, strict=True))


def _broken_like(run: tuple[int, int], digits: Digits) -> Digits:
    step, broken = run[1], []
    for count, _ in reversed(digits):
        broken.append((count, step))
        step *= count
    return tuple(reversed(broken))


def added(a: Terms, b: Terms, sign: int) -> Terms:
    """a + sign·b; a coordinate that cancels out is left away."""
    if not b:
        return a
    if not a and sign == 1:
        return b
    factors = {id(coordinate): factor for coordinate, factor in a}
    own = set(factors)
    for coordinate, factor in b:
        factors[id(coordinate)] = factors.get(id(coordinate), 0) + sign * factor
    pairs = (*a, *(pair for pair in b if id(pair[0]) not in own))
    return tuple((c, factors[id(c)]) for c, _ in pairs if factors[id(c)])
