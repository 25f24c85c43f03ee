"""Were a call's numbers computed by its kernels, or beside them?

Byte budgets count what kernels move. They say nothing about a submission that computes with torch,
whose cost no kernel shows, and launches a kernel that stores a zero somewhere, or one that copies.

So: outside kernels a program may *move* numbers (copy, slice, transpose, pad); it may not *make*
any, neither by arithmetic nor by a cast. Every number that a kernel loads has to be one of the
call's inputs or one that an earlier launch stored, and every number that the call returns has to be
one that a launch stored. Numbers are compared by value and dtype, wherever they lie, so that any
way to move them is allowed. 0, ±1, ±inf and memory that nobody wrote (NaN; the largest integer) are
anybody's, for buffers to be initialised with, and so are the numbers among the call's arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from grader.testing.compare import RTOL
from grader.testing.trace import MOST_BYTES, Step, Trace, leaves_of, numbers, reach

_ANYBODYS = (0.0, 1.0, -1.0)


class Known:
    """A growing set of numbers, each of some dtype.

    Args:
        always: numbers that it holds in every dtype.
    """

    def __init__(self, *always: float) -> None:
        self._always = torch.tensor([*_ANYBODYS, *always], dtype=torch.float64)
        self._sorted: dict[torch.dtype, torch.Tensor] = {}

    def _of(self, dtype: torch.dtype) -> torch.Tensor:
        """The numbers of a dtype, as float64, ascending."""
        if dtype not in self._sorted:
            self._sorted[dtype] = self._always.to(dtype).to(torch.float64).unique()
        return self._sorted[dtype]

    def add(self, flat: torch.Tensor) -> None:
        """Adds the elements of a flat tensor."""
        if flat.numel():
            self._sorted[flat.dtype] = torch.cat([self._of(flat.dtype), numbers(flat)]).unique()

    def lacks(self, flat: torch.Tensor) -> torch.Tensor:
        """Which elements of a flat tensor are not in the set, as a mask."""
        if not len(flat):
            return torch.zeros(0, dtype=torch.bool)
        values, known = numbers(flat), self._of(flat.dtype)
        place = torch.searchsorted(known, values).clamp(max=len(known) - 1)
        lacking = (known[place] != values) & values.isfinite()
        if not (flat.dtype.is_floating_point or flat.is_complex() or flat.dtype is torch.bool):
            lacking &= flat != torch.iinfo(flat.dtype).max
        return lacking.view(len(flat), -1).any(1)  # of a complex number, either part


def stored_numbers(trace: Trace) -> Known:
    """The numbers that launches have stored, and those that are anybody's.

    A store that changes nothing is not seen; what was there before is known from elsewhere then.
    """
    known = Known()
    for step in trace.steps:
        _add_stored(known, step)
    return known


def _add_stored(known: Known, step: Step) -> None:
    for position, _ in step.tensors():
        if step.moved(position).stored:
            known.add(step.after[position][step.changed(position)])


def strange_loads(trace: Trace) -> Iterator[str]:
    """Complaints about tensors that kernels loaded from, and that hold numbers from nowhere."""
    known = Known(*trace.numbers)
    for tensor in trace.inputs:
        known.add(reach(tensor))
    for number, step in enumerate(trace.steps, start=1):
        for position, before in step.tensors():
            if not step.moved(position).loaded:
                continue
            flat = reach(before)
            strange = known.lacks(flat)
            if strange.any():
                first = int(strange.nonzero()[0])
                which = f" (launch {number} of the call)" if len(trace.steps) > 1 else ""
                yield (
                    f"{step.launch.arg_names[position]} of {step.launch.kernel}{which} holds "
                    "numbers that are neither an input of the call nor stored by an earlier "
                    f"launch: {int(strange.sum()):,} of {len(flat):,}, the first is "
                    f"{flat[first].item():.8g} at element {first}; compute them in a kernel, not "
                    "with torch on the host"
                )
        _add_stored(known, step)


def not_stored(trace: Trace, outputs: Mapping[str, torch.Tensor]) -> Iterator[str]:
    """Complaints about outputs that no launch has stored, wholly or in part."""
    stored = stored_numbers(trace)
    for name, output in outputs.items():
        lacking = stored.lacks(output.detach().contiguous().reshape(-1))
        if lacking.all() and lacking.numel():
            yield f"{name} was stored by no kernel: compute it in one, not with torch on the host"
        elif lacking.any():
            yield (
                f"{int(lacking.sum()):,} of the {lacking.numel():,} numbers in {name} were stored "
                "by no kernel: the kernel is to store them as they are returned, in their dtype"
            )
    size = sum(output.nbytes for output in outputs.values())
    moved = sum(step.record.stored_bytes for step in trace.steps)
    if moved < size:
        yield (
            f"the kernels store {moved:,} B, less than the {size:,} B of {' and '.join(outputs)}: "
            "every element of an output is to be stored by a kernel"
        )


def no_sum(trace: Trace, sums: Mapping[str, torch.Tensor]) -> Iterator[str]:
    """Complaints about outputs that are neither stored by a launch nor a sum of what one stored."""
    stored = stored_numbers(trace)
    for name, output in sums.items():
        flat = output.detach().contiguous().reshape(-1)
        if stored.lacks(flat).any() and summed(trace, output) is None:
            yield (
                f"{name} is neither stored by a kernel nor the sum over the rows of a buffer that "
                "a kernel has stored: kernels are to compute it, but for that sum"
            )


def summed(trace: Trace, output: torch.Tensor) -> tuple[int, int] | None:
    """The step and position of a stored argument whose sum over rows is `output`, if there is one.

    `output`: (N,) or (..., N) with one row; the argument: any shape of K·N elements.
    """
    stored = stored_numbers(trace)
    target = output.detach().double().reshape(-1)
    tolerance = RTOL.get(output.dtype, 0.0)
    for index in reversed(range(len(trace.steps))):
        step = trace.steps[index]
        for position, _ in step.tensors():
            parts = step.left(position)
            fits = target.numel() and parts.numel() and parts.numel() % target.numel() == 0
            if not fits or not step.moved(position).stored or parts.is_complex():
                continue
            rows = parts.reshape(-1, target.numel()).double()
            size = rows.abs().sum(0)  # of the terms: a sum may come out far smaller
            close = ((rows.sum(0) - target).abs() <= tolerance * size).all()
            if close and not stored.lacks(parts.reshape(-1)).any():
                return index, position
    return None


def complaints(
    trace: Trace, stored: Mapping[str, torch.Tensor], sums: Mapping[str, torch.Tensor]
) -> list[str]:
    """All complaints about one call.

    Args:
        trace: of the call.
        stored: outputs that kernels have to have stored.
        sums: outputs that may also be a sum over the rows of what a kernel has stored.
    """
    if not trace.complete:
        return [
            f"the launches of the call were given more than {MOST_BYTES >> 21} MiB altogether, too "
            "much to be traced: launch fewer kernels, on smaller tensors"
        ]
    if not any(True for _ in leaves_of([*stored.values(), *sums.values()])):
        raise ValueError("no outputs were named whose origin could be checked")
    return [*strange_loads(trace), *not_stored(trace, stored), *no_sum(trace, sums)]
