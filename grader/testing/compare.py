"""Judges one output against its expected value, element by element, in float64.

An element passes if |got − expected| ≤ rtol·(scale + |expected|), where `scale` is the root mean
square of the expected tensor (or of its row). The bound follows the answer's own size, so neither
zeros, nor a constant, nor NaN can hide in a tolerance that was meant for larger numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from grader.testing.evidence import OutputRow
from grader.testing.hints import hint

#: Relative tolerance per dtype of the output. float32: sums of thousands of terms in any order
#: stay below; computing in a 16-bit format does not. 16-bit: one unit in the last place, which is
#: twice the error of rounding the exact result.
RTOL: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-8,
}


@dataclass(frozen=True)
class Comparison:
    """The outcome: a row for the report and, if the output is wrong, the text that says how."""

    row: OutputRow
    failure: str | None


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def compare(
    name: str,
    got: Any,
    expected: torch.Tensor,
    *,
    wanted: str = "a torch.Tensor",
    dtype: torch.dtype | None = None,
    rtol: float | None = None,
    floor: float = 0.0,
    per_row: bool = False,
    kernels: bool = True,
) -> Comparison:
    """Compares an output with its expected value.

    Args:
        name: what to call the output.
        got: what student code returned.
        expected: the right values: float64 for floating-point outputs (±inf allowed, NaN not),
            else an integer or boolean tensor, which has to be met exactly.
        wanted: what to say was expected where `got` is no tensor.
        dtype: the dtype wanted; None accepts any with a default tolerance.
        rtol: relative tolerance; None takes `RTOL` of the output's dtype.
        floor: an absolute error that always passes; needed if all of `expected` is zero.
        per_row: take the scale per row (last axis) instead of over the whole tensor.
        kernels: whether kernels made it, for the hint.

    Raises:
        ValueError: for an expected value that could not tell right from wrong (NaN, all zero
            without a floor, not float64): the test is at fault, not the submission.
    """
    _check_expected(name, expected, floor)
    if (wrong_kind := _wrong_kind(got, expected, wanted, dtype)) is not None:
        plain = type(got) is torch.Tensor
        shape = tuple(got.shape) if plain else ()
        kind = dtype_name(got.dtype) if plain else type(got).__name__
        row = OutputRow(
            name=name,
            shape=shape,
            dtype=kind,
            error=None,
            tolerance=None,
            index=(),
            got=kind,
            expected="",
            wrong=expected.numel(),
            total=expected.numel(),
            ok=False,
        )
        return Comparison(row, f"{name} {wrong_kind}")
    if not expected.dtype.is_floating_point:
        value, target = got.detach(), expected
        bound = torch.zeros(expected.shape, dtype=torch.float64)
        error = (value.double() - target.double()).abs()
        passed = value == target
    else:
        value, target = got.detach().double(), expected
        tolerance = RTOL[got.dtype] if rtol is None else rtol
        bound = _bound(target, tolerance, floor, per_row)
        error = (value - target).abs()
        passed = (error <= bound) | (value == target)  # equal infinities differ by NaN
    return _report(name, got.dtype, value, target, error, bound, passed, kernels)


def _check_expected(name: str, expected: torch.Tensor, floor: float) -> None:
    """Refuses an expected value with which a test could not fail."""
    if expected.numel() == 0:
        raise ValueError(f"{name}: the expected tensor is empty; nothing would be compared")
    if not expected.dtype.is_floating_point:
        return
    if expected.dtype is not torch.float64:
        raise ValueError(f"{name}: the expected value is {expected.dtype}; compute it in float64")
    if expected.isnan().any():
        raise ValueError(f"{name}: the expected value holds NaN")
    if floor <= 0 and not expected.any():
        raise ValueError(
            f"{name}: the expected value is all zeros; give a floor, the absolute error allowed"
        )


def _wrong_kind(
    got: Any, expected: torch.Tensor, wanted: str, dtype: torch.dtype | None
) -> str | None:
    """Why an output cannot even be compared, or None."""
    # Exactly torch.Tensor: a subclass could answer every question as it likes.
    if type(got) is not torch.Tensor:
        return f"is a {type(got).__name__}; {wanted} was expected"
    if got.device.type != "cpu" or got.layout is not torch.strided:
        return f"is on {got.device} ({got.layout}); an ordinary CPU tensor was expected"
    if got.shape != expected.shape:
        return f"has shape {tuple(got.shape)}; {tuple(expected.shape)} was expected"
    if dtype is not None and got.dtype is not dtype:
        return f"has dtype {dtype_name(got.dtype)}; {dtype_name(dtype)} was expected"
    if expected.dtype.is_floating_point and got.dtype not in RTOL:
        return f"has dtype {dtype_name(got.dtype)}; a floating-point dtype was expected"
    if not expected.dtype.is_floating_point and got.dtype.is_floating_point:
        return f"has dtype {dtype_name(got.dtype)}; an integer dtype was expected"
    return None


def _bound(target: torch.Tensor, rtol: float, floor: float, per_row: bool) -> torch.Tensor:
    """The largest error that passes, per element; infinities neither pass nor set the scale."""
    finite = target.isfinite()
    size = torch.where(finite, target, 0.0).abs()
    if per_row and target.ndim > 0:
        count = finite.sum(-1, keepdim=True).clamp(min=1)
        scale = ((size * size).sum(-1, keepdim=True) / count).sqrt()
    else:
        scale = ((size * size).sum() / finite.sum().clamp(min=1)).sqrt()
    return torch.where(finite, rtol * (scale + size) + floor, 0.0)


def _report(
    name: str,
    dtype: torch.dtype,
    value: torch.Tensor,
    target: torch.Tensor,
    error: torch.Tensor,
    bound: torch.Tensor,
    passed: torch.Tensor,
    kernels: bool,
) -> Comparison:
    """Finds the worst element and puts the outcome into words."""
    wrong = ~passed
    # NaN and infinite errors come first; then the error measured in tolerances.
    badness = torch.where(bound > 0, error / bound, error).nan_to_num(torch.inf, torch.inf)
    badness = torch.where(passed & ~error.isfinite(), 0.0, badness)
    flat = int(badness.argmax()) if badness.ndim else 0
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), value.shape))
    worst = float(error[index])
    finite = worst == worst and worst not in (torch.inf, -torch.inf)
    row = OutputRow(
        name=name,
        shape=tuple(value.shape),
        dtype=dtype_name(dtype),
        error=worst if finite else None,
        tolerance=float(bound[index]),
        index=index,
        got=_number(value[index]),
        expected=_number(target[index]),
        wrong=int(wrong.sum()),
        total=value.numel(),
        ok=not bool(wrong.any()),
    )
    if row.ok:
        return Comparison(row, None)
    return Comparison(row, _words(row, hint(value, target, wrong, dtype, kernels)))


def _words(row: OutputRow, advice: str | None) -> str:
    """The failure as a compiler would put it: what, where, what next."""
    place = f"{row.name}[{', '.join(map(str, row.index))}]" if row.index else row.name
    size = "not a number" if row.error is None else f"{row.error:.3g}"
    lines = [
        f"{row.name} is wrong: {row.wrong:,} of {row.total:,} elements are off "
        f"({row.dtype}, shape {row.shape})",
        f"  largest error {size} at {place}: got {row.got}, expected {row.expected} "
        f"(tolerance there {row.tolerance:.3g})",
    ]
    if advice:
        lines.append(f"  hint: {advice}")
    return "\n".join(lines)


def _number(element: torch.Tensor) -> str:
    """A tensor's one element, printed to the digits that matter."""
    value = element.item()
    return f"{value:.8g}" if isinstance(value, float) else str(value)
