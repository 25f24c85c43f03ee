"""Reads the pattern of wrong elements for the mistake behind it.

A hint is given only where the pattern tells: a wrong guess costs a student more than none.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import torch

_RESHAPED = re.compile(r"cannot reshape array of size (\d+) into shape \(([\d,]+)\)")
_ABOUT_KERNELS = re.compile(r": (is the tail|does the|does each) .*\?$")
#: How nearly constant a ratio has to be to be called a factor.
_SAME_FACTOR = 1e-3
#: Nobody writes shorter blocks in earnest: what begins at an edge of one does so by chance.
_SMALLEST_BLOCK = 16
#: Errors, relative to the whole, that rounding the operands of a sum leaves: from TF32's (a unit is
#: 2⁻¹⁰) made small by averaging, to bfloat16's (2⁻⁷).
_LEAST_ROUNDING, _MOST_ROUNDING = 2.0**-14, 2.0**-7


def hint(
    got: torch.Tensor,
    expected: torch.Tensor,
    wrong: torch.Tensor,
    dtype: torch.dtype = torch.float64,
    kernels: bool = True,
) -> str | None:
    """What the wrong elements have in common.

    Args:
        got: the output, float64 or integer.
        expected: the right values, of the same shape.
        wrong: which elements are off; at least one is.
        dtype: what the output was before it was widened.
        kernels: whether kernels made it; otherwise nothing is said of programs and masks.

    Returns:
        One sentence, or None if the pattern says nothing.
    """
    rules = (_never_written, _zeros, _box_of_errors, _columns, _rows, _factor)
    found = next((text for rule in rules if (text := rule(got, expected, wrong))), None)
    if found is None and dtype is torch.float32 and kernels:
        return _rounded(got, expected, wrong)
    # What follows a colon in these asks about a kernel.
    return found if kernels or found is None else _ABOUT_KERNELS.sub("", found)


def hint_of_error(message: str, n: int) -> str | None:
    """Whether an exception on one of n ranks comes of a list that was taken for one of all ranks.

    Args:
        message: its type and text.
        n: how many ranks there are.

    Returns:
        One sentence, or None if the text says nothing of that kind.
    """
    reshaped = _RESHAPED.search(message)
    if reshaped is not None:
        size = int(reshaped[1])
        into = math.prod(int(length) for length in reshaped[2].split(",") if length)
        off = into > 0 and size in (n * into, into / n)
    else:
        off = "IndexError: list index out of range" in message
    if n == 1 or not off:
        return None
    return f"this process holds 1 of {n} ranks, and so do its lists; comm.n says how many there are"


def _never_written(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Memory that torch.empty returned holds NaN while student code runs."""
    nan = got.isnan() if got.dtype.is_floating_point else torch.zeros_like(wrong)
    if not nan.any():
        return None
    where = _where(nan)
    place = f"{where} NaN" if where else f"{int(nan.sum()):,} elements are NaN"
    return (
        f"{place}: new memory (torch.empty) is filled with NaN here, so nothing was stored there, "
        "or unwritten memory was read; or it was computed, as 0/0 and −inf − (−inf) are"
    )


def _zeros(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    if got.numel() > 1 and not got.any():
        return "every element is 0: was the buffer ever stored to?"
    return None


def _box_of_errors(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Errors of a tensor with three axes or more confined to some indices of some axes."""
    box = _box(wrong)
    if box is None:
        return None
    if not box.full:
        return f"all that is wrong lies in {box.index}"
    for axis in (wrong.ndim - 1, wrong.ndim - 2):
        span = _span(_along(wrong, axis))
        if span and span[1] == wrong.shape[axis] - 1 and _is_tail(span[0], wrong.shape[axis]):
            what = f"is the tail of axis {axis} masked, on load and on store?"
            return f"only {box.index} is wrong: {what}"
    return f"only {box.index} is wrong"


def _columns(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Errors confined to the trailing columns, or elements of a vector, the others right."""
    if wrong.ndim not in (1, 2) or wrong.all():
        return None
    columns = _rows_of(wrong).any(0)
    span = _span(columns)
    if span is None or span[1] != len(columns) - 1 or span[0] == 0:
        return None
    what = "columns" if wrong.ndim > 1 else "elements"
    rows = _rows_of(wrong).any(1)
    subject = f"row {int(rows.nonzero()[0])}, " if wrong.ndim == 2 and int(rows.sum()) == 1 else ""
    first, last = span
    text = f"{subject}{_range(what, first, last)} wrong, {_range(what, 0, first - 1)} right"
    if _is_tail(first, len(columns)):
        return f"{text}: is the tail masked, on load and on store?"
    if first % _SMALLEST_BLOCK == 0:
        return f"{text}: does the kernel go over all blocks?"
    return text


def _is_tail(first: int, size: int) -> bool:
    """Whether `first` may begin the last, partial block of an axis: some power of two."""
    block = first & -first
    return block >= _SMALLEST_BLOCK and size - first < block


def _rows(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Errors confined to some rows, the others right."""
    if wrong.ndim != 2 or wrong.shape[0] < 2:
        return None
    # A row of zeros may be right by chance: the first row of a causal dQ is, whatever the scale.
    rows = wrong.any(1) | ~expected.any(1)
    span = _span(rows)
    if span is None or bool(rows.all()):
        return None
    first, last = span
    if first == 1 and last == len(rows) - 1 > 1:
        return "every row but the first is wrong: does each program add its own row × stride?"
    if last == len(rows) - 1:
        return (
            f"{_range('rows', first, last)} wrong, all before are right: does the grid end early?"
        )
    if first == last:
        return f"only row {first} is wrong"
    return f"only {_range('rows', first, last)} wrong"


def _factor(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Everything off by one factor, or each row by a factor of its own."""
    if not got.dtype.is_floating_point or got.numel() < 4:
        return None
    # Small elements carry little of the ratio; judge it where the expected value is sizeable.
    usable = (expected.abs() > 0.1 * expected.abs().max()) & expected.isfinite()
    ratio = torch.where(usable, got / expected, torch.nan)
    seen = ratio[usable]
    if seen.numel() >= 4 and seen.isfinite().all():
        middle = float(seen.median())
        if _constant(seen) and abs(middle - 1) > _SAME_FACTOR:
            return f"every element is {middle:.4g} times what it should be"
    if wrong.ndim < 2 or wrong.shape[-1] < 4 or wrong.numel() == wrong.shape[-1]:
        return None
    factors = []
    for row, mask in zip(_rows_of(ratio), _rows_of(usable), strict=True):
        values = row[mask]
        if values.numel() >= 2 and not (values.isfinite().all() and _constant(values)):
            return None
        factors += [float(values.median())] if values.numel() else []
    if all(abs(factor - 1) <= _SAME_FACTOR for factor in factors):
        return None
    return "each row is off by a factor of its own: look at what is computed once per row"


def _rounded(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Small errors everywhere, as of operands with fewer bits than float32 has."""
    usable = expected.isfinite() & got.isfinite()
    if 2 * int(wrong.sum()) < wrong.numel() or not usable.all():
        return None
    error = float((got - expected).norm() / expected.norm())
    if not _LEAST_ROUNDING <= error <= _MOST_ROUNDING:
        return None
    return (
        f"errors of {error:.0e} of its size, all over it: are float32 operands rounded to TF32 or "
        'to 16 bits? tl.dot takes input_precision="ieee"'
    )


def _constant(ratio: torch.Tensor) -> bool:
    middle = float(ratio.median())
    return abs(middle) > 1e-6 and float((ratio / middle - 1).abs().max()) < _SAME_FACTOR


def _where(mask: torch.Tensor) -> str | None:
    """Which rows or columns a mask covers entirely, and nothing else: `rows 3…7 are`."""
    if mask.all():
        return "all elements are"
    if mask.ndim == 0:
        return None
    if mask.ndim > 2:
        box = _box(mask)
        return f"{box.index} is" if box and box.full else None
    table = _rows_of(mask)
    rows, columns = table.any(1), table.any(0)
    if mask.ndim == 1:
        span = _span(columns)
        return _range("elements", *span) if span else None
    if int(mask.sum()) == int(rows.sum()) * table.shape[1] and (span := _span(rows)):
        return _range("rows", *span)
    if int(mask.sum()) == int(columns.sum()) * table.shape[0] and (span := _span(columns)):
        return _range("columns", *span)
    return None


@dataclass(frozen=True)
class _Box:
    """The smallest box around a mask's set elements.

    Attributes:
        index: as Python would index it: `[:, 1::2, 64:, :]`.
        full: whether all that is in the box is set.
    """

    index: str
    full: bool


def _box(mask: torch.Tensor) -> _Box | None:
    """The box around what is set in a mask of three axes or more; None if it is no smaller."""
    if mask.ndim < 3:
        return None
    slices, count = [], 1
    for axis, size in enumerate(mask.shape):
        places = _along(mask, axis).nonzero().flatten().tolist()
        text = _slice(places, size)
        if text is None:
            return None
        slices.append(text)
        count *= len(places)
    if all(text == ":" for text in slices):
        return None
    return _Box(f"[{', '.join(slices)}]", count == int(mask.sum()))


def _along(mask: torch.Tensor, axis: int) -> torch.Tensor:
    """For each index of an axis, whether anything is set there."""
    return mask.movedim(axis, 0).reshape(mask.shape[axis], -1).any(1)


def _slice(places: list[int], size: int) -> str | None:
    """Indices of an axis as Python would write them: `3`, `1:4`, `::2`; None if it cannot."""
    if len(places) == 1 and size > 1:
        return str(places[0])
    first, last = places[0], places[-1]
    step = places[1] - first if len(places) > 1 else 1
    if places != list(range(first, last + 1, step)):
        return None
    ends_with_axis = last + step >= size
    if step > 1 and len(places) == 2 and not (ends_with_axis and first < step):
        return None  # any two indices are so many steps apart
    begin = str(first) if first else ""
    end = "" if ends_with_axis else str(last + 1)
    return f"{begin}:{end}" + (f":{step}" if step > 1 else "")


def _rows_of(mask: torch.Tensor) -> torch.Tensor:
    """A mask as a table: all axes but the last are rows."""
    return mask.reshape(-1, mask.shape[-1])


def _span(flags: torch.Tensor) -> tuple[int, int] | None:
    """First and last set flag, if those between are all set."""
    places = flags.nonzero().flatten()
    if not len(places):
        return None
    first, last = int(places[0]), int(places[-1])
    return (first, last) if last - first + 1 == len(places) else None


def _range(what: str, first: int, last: int) -> str:
    """`columns 64…99 are`, `column 99 is`."""
    return f"{what[:-1]} {first} is" if first == last else f"{what} {first}…{last} are"
