"""Runs the launches of a call again, on other inputs: does what they compute follow the inputs?

A program may compute its answer beside its kernels and hand it to them in ways that leave no
strange tensor behind: as scalar arguments, as constants in a kernel's code, as a tensor of bits. So
the launches, which are plain messages, are executed once more with other inputs in place of those
of the call. What the kernels compute follows; what was computed elsewhere does not.

Which of the call's inputs an argument was is found by its contents: whole tensors first, then runs
of elements (a slice, a row), then single numbers. Where the contents fit several and these go
different ways, nothing can be said, and nothing is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mini_triton
import torch

from grader.testing.provenance import summed
from grader.testing.trace import Step, Trace, bits, copies, leaves_of, reach

#: At most this many places are looked at where a run of elements may have come from.
_MOST_PLACES = 16


class Unclear(Exception):
    """It cannot be told where numbers came from: they fit several places."""


@dataclass
class _Pair:
    """Elements as they were in the call, and what stands for them in the replay; flat."""

    old: torch.Tensor
    new: torch.Tensor
    raw: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.raw = bits(self.old).numpy().tobytes()


def replay(trace: Trace, inputs: Any, outputs: Any) -> Any:
    """What a call would have returned had its launches been executed on other inputs.

    Args:
        trace: of the call.
        inputs: as the call's own, with other tensors of the same shapes, strides and dtypes.
        outputs: what the call returned: tensors in nested tuples and lists.

    Returns:
        The same with other tensors. Numbers in them that came from no kernel are as they were.

    Raises:
        Unclear: see there.
        KernelError: a launch fails on these inputs.
        ValueError: the inputs do not correspond to those of the call.
    """
    return _Replay(trace, inputs).value(outputs)


class _Replay:
    def __init__(self, trace: Trace, inputs: Any) -> None:
        self._trace = trace
        self._pairs: list[_Pair] = []
        self._left: dict[tuple[int, int], torch.Tensor] = {}
        others = [leaf for leaf in leaves_of(inputs) if isinstance(leaf, torch.Tensor)]
        if [_layout(tensor) for tensor in others] != [_layout(tensor) for tensor in trace.inputs]:
            raise ValueError("the inputs of a replay have to be laid out as those of the call")
        for old, new in zip(trace.inputs, others, strict=True):
            self._learn(old, new)
        device = mini_triton.LocalDevice()
        for index, step in enumerate(trace.steps):
            self._run(device, index, step)

    def _run(self, device: mini_triton.LocalDevice, index: int, step: Step) -> None:
        positions, before = zip(*step.tensors(), strict=True) if any(step.tensors()) else ((), ())
        args = list(step.launch.args)
        for position, old, new in zip(positions, before, copies(before), strict=True):
            reach(new).copy_(self._followed(old))
            args[position] = new
        launch = step.launch
        device.launch(
            mini_triton.Launch(launch.kernel, launch.ttir, launch.grid, args, launch.arg_names)
        )
        for position in positions:
            if step.moved(position).stored:
                self._learn(step.left(position), args[position])
                self._left[index, position] = args[position]

    def _learn(self, old: torch.Tensor, new: Any) -> None:
        """Notes what became of a tensor: of all it reaches, and of its own elements in order."""
        self._pairs.append(_Pair(reach(old).clone(), reach(new).clone()))
        if old.numel() and not old.is_contiguous():
            self._pairs.append(_Pair(old.contiguous().view(-1), new.contiguous().view(-1)))

    # ---------------------------------------------------------------- outputs
    def value(self, value: Any) -> Any:
        """A returned value with every tensor replaced."""
        if isinstance(value, tuple | list):
            return type(value)(map(self.value, value))
        if not isinstance(value, torch.Tensor) or value.numel() == 0:
            return value
        flat = value.contiguous().reshape(-1)
        found = self._whole(flat)
        if found is None and (sum_of := summed(self._trace, value)) is not None:
            parts = self._left[sum_of].reshape(-1, value.numel())
            found = parts.double().sum(0).to(value.dtype)
        return (self._parts(value) if found is None else found).reshape(value.shape)

    # ---------------------------------------------------------------- arguments
    def _followed(self, old: torch.Tensor) -> torch.Tensor:
        """What all that an argument reaches holds in the replay."""
        flat = reach(old)
        found = self._whole(flat)
        if found is None and not old.is_contiguous():
            inner = self._whole(old.contiguous().view(-1))
            if inner is not None:
                found = flat.clone()
                found.as_strided(old.shape, old.stride(), 0).copy_(inner.view(old.shape))
        return self._parts(flat) if found is None else found

    def _whole(self, flat: torch.Tensor) -> torch.Tensor | None:
        """What became of a tensor, if it is an entire one that is known, or holds nothing yet."""
        if not _holds_numbers(flat).any():
            return flat
        raw = bits(flat).numpy().tobytes()
        fits = [p.new for p in self._pairs if p.old.dtype is flat.dtype and p.raw == raw]
        return _the_one(fits) if fits else None

    def _parts(self, tensor: torch.Tensor) -> torch.Tensor:
        """What became of a tensor put together from parts of others: by its runs, flat."""
        flat = tensor.contiguous().reshape(-1)
        if (run := self._run_of(flat)) is not None:
            return run
        rows = tensor.contiguous().reshape(-1, tensor.shape[-1]) if tensor.ndim > 1 else flat[None]
        return torch.cat([self._row(row) for row in rows])

    def _row(self, row: torch.Tensor) -> torch.Tensor:
        if not _holds_numbers(row).any():
            return row
        run = self._run_of(row)
        return self._singly(row) if run is None else run

    def _run_of(self, flat: torch.Tensor) -> torch.Tensor | None:
        """What became of a run of elements that stand side by side in a known tensor."""
        raw, size = bits(flat).numpy().tobytes(), flat.element_size()
        fits: list[torch.Tensor] = []
        for pair in self._pairs:
            if pair.old.dtype is not flat.dtype:
                continue
            at = pair.raw.find(raw)
            while at >= 0 and len(fits) < _MOST_PLACES:
                if at % size == 0:
                    fits.append(pair.new[at // size : at // size + len(flat)])
                at = pair.raw.find(raw, at + 1)
        return _the_one(fits) if fits else None

    def _singly(self, flat: torch.Tensor) -> torch.Tensor:
        """What became of numbers that were moved one by one."""
        result, moves = flat.clone(), _holds_numbers(flat)
        if flat.is_complex():
            return result
        values = flat.double()
        left = moves.clone()
        for pair in self._pairs:
            if pair.old.dtype is not flat.dtype or not pair.old.numel():
                continue
            old, order = pair.old.double().sort()
            place = torch.searchsorted(old, values).clamp(max=len(old) - 1)
            hit = moves & (old[place] == values)
            last = (torch.searchsorted(old, values, right=True) - 1).clamp(min=0)
            new = pair.new[order]
            if (hit & ((new[place] != new[last]) | (~left & (new[place] != result)))).any():
                raise Unclear
            result = torch.where(hit, new[place], result)
            left &= ~hit
        return result


def _the_one(fits: list[torch.Tensor]) -> torch.Tensor:
    """What all places say.

    Raises:
        Unclear: they say different things.
    """
    first, *others = fits
    if any(not torch.equal(bits(first), bits(other)) for other in others):
        raise Unclear
    return first


def _holds_numbers(flat: torch.Tensor) -> torch.Tensor:
    """Which elements hold what was put there: neither zero nor memory that nobody wrote."""
    held = flat != 0
    if flat.dtype.is_floating_point or flat.is_complex():
        return held & flat.isfinite()
    return held if flat.dtype is torch.bool else held & (flat != torch.iinfo(flat.dtype).max)


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tuple(tensor.shape), tensor.stride()
