"""How often programs run the body of a loop, and which of them run a trip together.

Programs whose loops differ in length run in *stages*, each of some trips and of the programs that
run them. The shorter loops end sooner; or they begin later, where that gives all programs one
counter: keys that causal attention streams past blocks of queries start at one place, queries that
it streams past blocks of keys end at one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from mini_triton.errors import KernelError
from mini_triton.execute.tiles.affine import Affine, constant, per_program
from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame

Tensor = torch.Tensor

_MOST = torch.iinfo(torch.int64).max


@dataclass(frozen=True)
class Stage:
    """Trips of a schedule, and the positions of the programs that run them, int64.

    least: how many trips each of them runs at least, in all.
    """

    trips: range
    running: Tensor
    least: int


@dataclass(frozen=True)
class Schedule:
    """What a loop's programs run, and when.

    first: the counter in trip 0, which some programs may not run. counts: how many trips each
    program runs, (P,), all of them 1 or more; one number if they agree. begins: the trip in which
    each begins; None if that is 0. most: the largest count.
    """

    first: Affine
    step: Affine
    counts: int | Tensor
    most: int
    begins: Affine | None = None

    def stages(self) -> Iterator[Stage]:
        """In order. The programs of each are some of those before it, or the other way round."""
        assert isinstance(self.counts, torch.Tensor)
        counts = self.counts.numpy()
        ends = np.unique(counts).tolist()
        lengths = list(zip([0, *ends], ends, strict=False))
        for shorter, length in lengths if self.begins is None else reversed(lengths):
            trips = range(shorter, length)
            if self.begins is not None:
                trips = range(self.most - length, self.most - shorter)
            yield Stage(trips, torch.from_numpy(np.flatnonzero(counts >= length)), length)


def scheduled(lower: Affine, step: Affine, counts: int | Tensor) -> Schedule:
    """The schedule of a loop from `lower` on, of which each program runs so many trips, 1 or more.

    Loops that start at different places and differ in length are aligned at their ends, if then
    the counter is the same in all programs.
    """
    if isinstance(counts, int):
        return Schedule(lower, step, counts, counts)
    most = int(counts.max())
    if lower.terms and not step.terms:
        begins = most - counts
        first = lower.base - begins * step.start
        if bool((first == first[0]).all()):
            aligned = constant(int(first[0]), lower.dtype)
            return Schedule(aligned, step, counts, most, per_program(begins))
    return Schedule(lower, step, counts, most)


def bound(frame: Frame, op: Op, slot: int) -> Affine:
    """A bound or the step of a loop, as the loop sees its bits: signed or unsigned.

    Raises:
        KernelError: an unsigned one is 2^63 or more.
    """
    value = frame[slot]
    unsigned = bool(op.attrs.get("unsigned"))
    if isinstance(value, Affine) and not (unsigned and value.lowest < 0):
        return value
    lanes = frame.tensor(slot)
    wide = lanes.to(torch.int64)
    if unsigned:
        wide = wide & ((1 << 8 * lanes.element_size()) - 1 if lanes.element_size() < 8 else -1)
        if bool((wide < 0).any()):
            raise KernelError("a bound of this loop over unsigned numbers is 2^63 or more")
    found = per_program(wide)
    assert found is not None
    return found.with_dtype(lanes.dtype)


def count_trips(frame: Frame, op: Op, lower: Affine, upper: Affine, step: Affine) -> int | Tensor:
    """How often each program runs the body: one number, or (P,) where programs differ.

    The body runs while the counter is below the upper bound, so a step that is not positive makes
    no trip or endless ones; the latter raise `KernelError`.
    """
    first, last, stride = lower.base, upper.base, step.base
    if step.lowest <= 0:
        stride = torch.as_tensor(stride)
        endless = (stride <= 0) & torch.as_tensor(first < last)
        if endless.any():
            at = int(endless.expand(frame.count).nonzero()[0])
            found = int(stride.expand(frame.count)[at])
            program = frame.machine.program_id(int(frame.programs[at]))
            raise KernelError.at(
                op.where,
                frame.machine.kernel,
                f"program {program}: the loop's step is {found}, so that it would never end",
                verb="for",
                programs=(program,),
                hint="make the step positive: kernels count up, and may compute with n - 1 - i",
            )
        stride = stride.clamp(min=1)
    if isinstance(first, int) and isinstance(last, int) and isinstance(stride, int):
        return max(0, -(-(last - first) // stride))
    apart = max(upper.highest - lower.lowest, lower.highest - upper.lowest)
    if apart > _MOST:  # differences in int64 would wrap
        bounds = zip(*(_per_program(v, frame.count) for v in (first, last, stride)), strict=True)
        trips = torch.tensor(
            [min(max(0, -(-(end - begin) // by)), _MOST) for begin, end, by in bounds]
        )
    else:
        span = torch.as_tensor(last - first)
        trips = -torch.div(-span, stride, rounding_mode="floor").clamp(max=0)
    fewest, most = torch.stack(torch.aminmax(trips)).tolist()
    return most if fewest == most else trips


def _per_program(value: int | Tensor, count: int) -> list[int]:
    numbers: list[int] = torch.as_tensor(value).expand(count).tolist()
    return numbers
