"""Runs the launches of a call again, on other inputs: does what they compute follow the inputs?

A program may compute its answer beside its kernels and hand it to them in ways that leave no
strange tensor behind: as scalar arguments, as constants in a kernel's code, as a tensor of bits. So
the launches, which are plain messages, are executed once more with other inputs in place of those
of the call. What the kernels compute follows; what was computed elsewhere does not.

What an argument was is found by its contents: whole tensors first, then runs of elements (a slice,
a row, several tensors joined), then single numbers; among inputs first, then among what launches
have stored, the last first. Contents may fit several inputs, by chance (16-bit numbers often do) or
because a submission looked for such numbers. Then whoever asks has to say which input it was, and
had better try all: see `guess`. Mostly it does not matter, as `substitute` makes equal numbers of
equal ones; it does where an input is not chosen freely, such as the o of a backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mini_triton
import torch

from grader.testing.provenance import summed
from grader.testing.trace import Step, Trace, bits, copies, leaves_of, reach

#: The last steps of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
#: OOPSLA 2014): shifts, and the factors between them as signed numbers.
_SHIFTS = (30, 27, 31)
_FACTORS = (0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64))


class Unclear(Exception):
    """It cannot be told which input numbers were: they fit several, and no guess was given."""


def substitute(flat: torch.Tensor, seed: int) -> torch.Tensor:
    """A normal random number for each number of a flat tensor: equal for equal ones, 0 for 0.

    Args:
        flat: floating-point.
        seed: numbers are a function of this and the one that they stand for.
    """
    word = flat.double().view(torch.int64) ^ seed
    for shift, factor in zip(_SHIFTS, (*_FACTORS, 1), strict=True):
        word = (word ^ ((word >> shift) & ((1 << (64 - shift)) - 1))) * factor
    uniform = ((word >> 11) & ((1 << 53) - 1)).double() * 2.0**-53 + 2.0**-54
    normal = torch.special.ndtri(uniform)
    return torch.where(flat == 0, 0.0, normal).to(flat.dtype)


@dataclass
class _Pair:
    """Elements as they were in the call, and what stands for them in the replay; flat.

    Attributes:
        old: as they were.
        new: what stands for them.
        source: the position of the input that they are, None if a launch has stored them.
        raw: the bytes of `old`.
    """

    old: torch.Tensor
    new: torch.Tensor
    source: int | None
    raw: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.raw = bits(self.old).numpy().tobytes()


def replay(
    trace: Trace, inputs: Any, outputs: Any, guess: int | None = None
) -> tuple[Any, list[mini_triton.LaunchRecord]]:
    """What a call would have returned had its launches been executed on other inputs.

    Args:
        trace: of the call.
        inputs: as the call's own, with other tensors of the same shapes, strides and dtypes.
        outputs: what the call returned: tensors in nested tuples and lists.
        guess: the position among the inputs of the one that numbers are taken for where they fit
            several.

    Returns:
        The outputs with other tensors (numbers in them that came from no kernel are as they were),
        and what each launch moved this time.

    Raises:
        Unclear: see there.
        KernelError: a launch fails on these inputs.
        ValueError: the inputs do not correspond to those of the call.
    """
    again = _Replay(trace, inputs, guess)
    return again.value(outputs), again.records


class _Replay:
    """The launches of a trace, executed again.

    Attributes:
        records: what each of them moved.
    """

    def __init__(self, trace: Trace, inputs: Any, guess: int | None) -> None:
        self._trace = trace
        self._guess = guess
        self.records: list[mini_triton.LaunchRecord] = []
        self._pairs: list[_Pair] = []
        self._left: dict[tuple[int, int], torch.Tensor] = {}
        others = [leaf for leaf in leaves_of(inputs) if isinstance(leaf, torch.Tensor)]
        if [_layout(tensor) for tensor in others] != [_layout(tensor) for tensor in trace.inputs]:
            raise ValueError("the inputs of a replay have to be laid out as those of the call")
        for position, (old, new) in enumerate(zip(trace.inputs, others, strict=True)):
            self._learn(old, new, position)
        device = mini_triton.LocalDevice(show=lambda line: None)  # it was printed the first time
        for index, step in enumerate(trace.steps):
            self._run(device, index, step)

    def _run(self, device: mini_triton.LocalDevice, index: int, step: Step) -> None:
        positions, before = zip(*step.tensors(), strict=True) if any(step.tensors()) else ((), ())
        args = list(step.launch.args)
        for position, old, new in zip(positions, before, copies(before), strict=True):
            reach(new).copy_(self._followed(old))
            args[position] = new
        launch = step.launch
        again = mini_triton.Launch(
            launch.kernel,
            launch.ttir,
            launch.grid,
            args,
            launch.arg_names,
            pointed_to=launch.pointed_to,
            addresses=launch.addresses,
        )
        self.records.append(device.launch(again))
        for position in positions:
            if step.moved(position).stored:
                self._learn(step.left(position), args[position], None)
                self._left[index, position] = args[position]

    def _learn(self, old: torch.Tensor, new: Any, source: int | None) -> None:
        """Notes what became of a tensor: of all it reaches, and of its elements in either order."""
        pairs = [(reach(old), reach(new))]
        if old.numel() and not old.is_contiguous():
            pairs.append((old.reshape(-1), new.reshape(-1)))
        if old.ndim == 2:
            pairs.append((old.t().reshape(-1), new.t().reshape(-1)))
        known = [_Pair(before.clone(), after.clone(), source) for before, after in pairs]
        # Behind the inputs, and before what was stored earlier: the last comes first.
        place = sum(pair.source is not None for pair in self._pairs)
        self._pairs[place:place] = known

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
        fits = [p for p in self._pairs if p.old.dtype is flat.dtype and p.raw == raw]
        return self._first([(pair.source, pair.new) for pair in fits])

    def _parts(self, tensor: torch.Tensor) -> torch.Tensor:
        """What became of a tensor put together from parts of others: by its runs, flat."""
        flat = tensor.contiguous().reshape(-1)
        for way in (self._run_of, self._joined):
            if (found := way(flat)) is not None:
                return found
        rows = tensor.contiguous().reshape(-1, tensor.shape[-1]) if tensor.ndim > 1 else flat[None]
        return torch.cat([self._row(row) for row in rows])

    def _row(self, row: torch.Tensor) -> torch.Tensor:
        if not _holds_numbers(row).any():
            return row
        used = 1 + int(row.nonzero().max())  # behind that it is padded, or happens to be 0
        run = self._run_of(row[:used])
        return self._singly(row) if run is None else torch.cat([run, row[used:]])

    def _run_of(self, flat: torch.Tensor) -> torch.Tensor | None:
        """What became of a run of elements that stand side by side in a known tensor."""
        raw, size = bits(flat).numpy().tobytes(), flat.element_size()
        fits = []
        for pair in self._pairs:
            if pair.old.dtype is flat.dtype and (at := _aligned(pair.raw, raw, size)) is not None:
                fits.append((pair.source, pair.new[at : at + len(flat)]))
        return self._first(fits)

    def _joined(self, flat: torch.Tensor) -> torch.Tensor | None:
        """What became of several entire tensors, one behind the other."""
        raw, found, at = bits(flat).numpy().tobytes(), [], 0
        pairs = [pair for pair in self._pairs if pair.old.dtype is flat.dtype and pair.raw]
        while at < len(raw):
            fits = [pair for pair in pairs if raw.startswith(pair.raw, at)]
            if not fits:
                return None
            longest = max(fits, key=lambda pair: len(pair.raw))
            found.append(longest.new)
            at += len(longest.raw)
        return torch.cat(found) if found else None

    def _singly(self, flat: torch.Tensor) -> torch.Tensor:
        """What became of numbers that were moved one by one."""
        result, left = flat.clone(), _holds_numbers(flat)
        if flat.is_complex():
            return result
        values, moves = flat.double(), left.clone()
        fits = []
        for pair in self._pairs:
            if pair.old.dtype is not flat.dtype or not pair.old.numel():
                continue
            old, order = pair.old.double().sort()
            place = torch.searchsorted(old, values).clamp(max=len(old) - 1)
            fits.append((pair.source, pair.new[order][place], moves & (old[place] == values)))
        if self._guess is not None:
            # The input that most of the numbers stand in is most likely where they are from.
            fits.sort(key=lambda fit: (fit[0] is None, -int(fit[2].sum()), fit[0] != self._guess))
        for source, new, hit in fits:
            if source is not None and self._guess is None and (hit & ~left & (new != result)).any():
                raise Unclear
            result = torch.where(hit & left, new, result)
            left &= ~hit
        return result

    def _first(self, fits: list[tuple[int | None, torch.Tensor]]) -> torch.Tensor | None:
        """The first place that fits, if any does: (which input it is, what it holds now).

        Raises:
            Unclear: several inputs fit, which hold different numbers now.
        """
        inputs = [new for source, new in fits if source is not None]
        if any(not torch.equal(bits(inputs[0]), bits(other)) for other in inputs[1:]):
            if self._guess is None:
                raise Unclear
            fits = sorted(fits, key=lambda fit: (fit[0] is None, fit[0] != self._guess))
        return fits[0][1] if fits else None


def _aligned(raw: bytes, part: bytes, size: int) -> int | None:
    """The first element of size `size` at which a run of elements begins."""
    at = raw.find(part)
    while at >= 0 and at % size:
        at = raw.find(part, at + 1)
    return None if at < 0 else at // size


def _holds_numbers(flat: torch.Tensor) -> torch.Tensor:
    """Which elements hold what was put there: neither zero nor memory that nobody wrote."""
    held = flat != 0
    if flat.dtype.is_floating_point or flat.is_complex():
        return held & flat.isfinite()
    return held if flat.dtype is torch.bool else held & (flat != torch.iinfo(flat.dtype).max)


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tuple(tensor.shape), tensor.stride()
