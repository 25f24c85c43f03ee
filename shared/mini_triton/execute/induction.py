"""Loops whose indices advance evenly: index arithmetic once for the loop, not in every trip.

Of most kernels' loops the larger part is arithmetic on addresses and masks: of the counter, or of
pointers that the loop carries on, by +, − and × with what does not change. Such a value is *even*:
its formula moves by the same number each trip. The first and the last trip tell that number, and
that the value stays within its dtype's range in all of them. What depends on nothing that changes
is *fixed*. Even and fixed values are set, trip by trip; only the other operations are run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from mini_triton.execute.tiles.affine import INDEX_DTYPES, Affine, constant, per_program
from mini_triton.execute.tiles.mask import Mask
from mini_triton.execute.tiles.values import Pointer, Value, dense, narrow
from mini_triton.ir.program import Block, Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame
    from mini_triton.execute.trips import Schedule

Tensor = torch.Tensor

#: Fewer trips than this are not worth a look at the loop, which costs about two.
FEWEST_TRIPS = 4

#: Operations whose result is even if their operands are.
_LINEAR = {
    "arith.addi",
    "arith.extsi",
    "arith.index_cast",
    "arith.subi",
    "arith.trunci",
    "tt.addptr",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.splat",
    "tt.trans",
    "tt.unsplat",
    "ttg.convert_layout",
}
#: Comparisons that give the same answer in all trips if they do in the first and the last.
_MONOTONE = ("slt", "sle", "sgt", "sge")


@dataclass(frozen=True)
class Even:
    """A formula, or pointers of one, that moves by `step` each trip."""

    first: Affine | Pointer
    step: int

    def at(self, trip: int) -> Affine | Pointer:
        """The value in a trip, the first being 0."""
        return moved(self.first, self.step * trip)

    def narrow(self, index: Tensor) -> Even:
        """Of the programs at the positions `index`."""
        first = narrow(self.first, index)
        assert isinstance(first, Affine | Pointer)
        return Even(first, self.step)


def moved(value: Affine | Pointer, by: int | Affine) -> Affine | Pointer:
    """`value + by`, a number or one for each program, without regard to wrapping."""
    if isinstance(value, Pointer):
        offset = moved(value.offset, by)
        assert isinstance(offset, Affine)
        return Pointer(value.buffer, offset, value.rest, value.dtype)
    return value.moved(by) if isinstance(by, int) else value.plus(by.splat(len(value.steps)))


def _apart(first: Value, last: Value) -> int | None:
    """By how much all lanes of one formula are above those of another; None if it differs."""
    if isinstance(first, Pointer) and isinstance(last, Pointer):
        same = first.buffer is last.buffer and first.rest is last.rest and first.dtype == last.dtype
        return _apart(first.offset, last.offset) if same else None
    if not isinstance(first, Affine) or not isinstance(last, Affine):
        return None
    if (first.dtype, first.steps, first.sizes) != (last.dtype, last.steps, last.sizes):
        return None
    if first.terms == last.terms:
        return last.start - first.start
    apart = torch.as_tensor(last.base - first.base)
    step = int(apart[0])
    return step if bool((apart == step).all()) else None


def _evenly(first: Value, last: Value, trips: int) -> Even | None:
    """What is `first` in the first trip and `last` in the last, if all between are in range."""
    apart, after = _apart(first, last), max(trips - 1, 1)
    if apart is None or apart % after or not isinstance(first, Affine | Pointer):
        return None
    even = Even(first, apart // after)
    end = even.at(trips - 1)
    if isinstance(first, Affine) and isinstance(end, Affine):
        return even if first.fits() and end.fits() else None
    return even


def _answer(value: Value) -> bool | None:
    """What a comparison of formulas gave, if the same in all lanes."""
    return value.decided if isinstance(value, Mask) else None


class _Look:
    """Which values of a loop's body are fixed and which are even, found by trying."""

    def __init__(
        self, frame: Frame, block: Block, carried: list[Value], counter: Even, schedule: Schedule
    ) -> None:
        trips, begins = schedule.most, schedule.begins
        self._frame = frame
        self._ops = block.ops[:-1]
        self._counter = (block.args[0], counter)
        self._own = set(block.args) | {slot for op in block.ops for slot in op.results}
        yielded = dict(zip(block.args[1:], block.ops[-1].operands, strict=True))
        given = zip(block.args[1:], carried, strict=True)
        guesses = {s: Even(v, 0) for s, v in given if isinstance(v, Affine | Pointer)}
        if guesses:  # what they are after one trip tells how they may move
            self._look(guesses, 1, self._leading_to({yielded[slot] for slot in guesses}))
            steps = {s: self._step(guess.first, yielded[s]) for s, guess in guesses.items()}
            known = {s: (guesses[s].first, n) for s, n in steps.items() if n is not None}
            guesses = {
                s: Even(moved(first, begins.times(-n)) if begins and n else first, n)
                for s, (first, n) in known.items()
            }
        while True:
            self._look(guesses, trips, self._own)
            wrong = [s for s, guess in guesses.items() if not self._moves(yielded[s], guess)]
            if not wrong:
                return
            for slot in wrong:
                del guesses[slot]

    def _leading_to(self, slots: set[int]) -> set[int]:
        """The slots, and those that they are computed from."""
        found = set(slots)
        for op in reversed(self._ops):
            if not found.isdisjoint(op.results):
                found.update(op.operands)
        return found

    def _step(self, first: Value, slot: int) -> int | None:
        even = self.even.get(slot)
        return None if even is None else _apart(first, even.first)

    def _moves(self, slot: int, guess: Even) -> bool:
        """Whether a yielded value is, in every trip, the carried one of the next."""
        even = self.even.get(slot)
        return (
            even is not None
            and even.step == guess.step
            and _apart(guess.first, even.first) == guess.step
        )

    def _look(self, guesses: dict[int, Even], trips: int, among: set[int]) -> None:
        """Fills `fixed` and `even`, given how the carried values move."""
        slot, counter = self._counter
        self.fixed: dict[int, Value] = {}
        self.even: dict[int, Even] = {slot: counter, **guesses}
        for op in self._ops:
            if len(op.results) != 1 or op.framed is not None or op.results[0] not in among:
                continue
            unknown = (s for s in op.operands if s in self._own)
            if all(s in self.fixed or s in self.even for s in unknown):
                self._classify(op, trips)

    def _classify(self, op: Op, trips: int) -> None:
        slot = op.results[0]
        if not any(s in self.even for s in op.operands):
            self.fixed[slot] = self._result(op, 0)
            return
        compares = op.name == "arith.cmpi" and op.keywords[0] in _MONOTONE
        scales = op.name == "arith.muli" and not all(s in self.even for s in op.operands)
        if not (compares or scales or op.name in _LINEAR):
            return
        first, last = (self._formula(op, trip) for trip in (0, trips - 1))
        if first is None or last is None:
            return
        if not compares:
            even = _evenly(first, last, trips)
            if even is not None:
                self.even[slot] = even
        elif _answer(first) is not None and _answer(first) == _answer(last):
            self.fixed[slot] = first

    def _values(self, op: Op, trip: int) -> list[Value]:
        return [
            self.even[s].at(trip)
            if s in self.even
            else self.fixed[s]
            if s in self.fixed
            else self._frame[s]
            for s in op.operands
        ]

    def _formula(self, op: Op, trip: int) -> Value | None:
        """What an operation gives without looking at lanes."""
        values = self._values(op, trip)
        found: Value | None = op.lazy(op, *values) if op.lazy is not None else None
        if found is None and isinstance(values[0], Pointer) and op.pure is not None:
            found = op.pure(op, *values)
        return found

    def _result(self, op: Op, trip: int) -> Value:
        values = self._values(op, trip)
        result = op.lazy(op, *values) if op.lazy is not None else None
        found: Value = op.pure(op, *map(dense, values)) if result is None else result
        return found


class Induction:
    """A loop whose even and fixed values are known: runs its trips."""

    def __init__(
        self, frame: Frame, block: Block, carried: list[Value], counter: Even, schedule: Schedule
    ) -> None:
        look = _Look(frame, block, carried, counter, schedule)
        known = look.fixed.keys() | look.even.keys()
        self._counts = schedule.counts
        self._carried = carried
        self._steps = [look.even[s].step if s in look.even else None for s in block.args[1:]]
        self._args = [s for s in block.args[1:] if s not in look.even]
        end = block.ops[-1]
        yielded = [s for s, step in zip(end.operands, self._steps, strict=True) if step is None]
        rest = [op for op in block.ops[:-1] if not op.results or op.results[0] not in known]
        rest.append(replace(end, operands=tuple(yielded), uses=tuple(yielded)))
        self._block = Block(block.label, block.args, rest)
        used = {slot for op in rest for slot in op.uses}
        self._fixed = [(slot, value) for slot, value in look.fixed.items() if slot in used]
        self._even = [(slot, even) for slot, even in look.even.items() if slot in used]

    @property
    def passed(self) -> list[Value]:
        """The values that the loop carries on and that are not even, before it."""
        return [v for v, step in zip(self._carried, self._steps, strict=True) if step is None]

    @property
    def nothing_left(self) -> bool:
        """Whether there is nothing to run: all that the loop does is known."""
        return len(self._block.ops) == 1 and not self._args

    def run(
        self, frame: Frame, index: Tensor | None, trips: range, passed: list[Value]
    ) -> list[Value]:
        """Runs trips in a frame of the programs at the positions `index`; None: all of them."""
        fixed, evens = self._fixed, self._even
        if index is not None:
            fixed = [(slot, narrow(value, index)) for slot, value in fixed]
            evens = [(slot, even.narrow(index)) for slot, even in evens]
        passed = list(passed)
        for trip in trips:
            for slot, value in fixed:
                frame[slot] = value
            for slot, even in evens:
                frame[slot] = even.at(trip)
            for slot in reversed(self._args):  # nobody else may hold them (`reuse`)
                frame[slot] = passed.pop()
            _, passed = frame.machine.run_block(frame, self._block)
        return passed

    def joined(self, passed: list[Value]) -> list[Value]:
        """All values that the loop carries on, after it, given those that it ran for."""
        left, counts = iter(passed), self._counts
        many = constant(counts, torch.int64) if isinstance(counts, int) else per_program(counts)
        assert many is not None
        values: list[Value] = []
        for value, step in zip(self._carried, self._steps, strict=True):
            if step is None:
                values.append(next(left))
            else:
                assert isinstance(value, Affine | Pointer)
                values.append(moved(value, many.times(step)) if step else value)
        return values


def induction(
    frame: Frame, block: Block, carried: list[Value], schedule: Schedule
) -> Induction | None:
    """The loop, if looking at it may pay and its counter is even."""
    step, trips = schedule.step, schedule.most
    if trips < FEWEST_TRIPS or step.terms or step.dtype not in INDEX_DTYPES:
        return None
    first = schedule.first
    counter = _evenly(first, first.moved(step.start * (trips - 1)), trips)
    return None if counter is None else Induction(frame, block, carried, counter, schedule)
