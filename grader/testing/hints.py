"""Reads the pattern of wrong elements for the mistake behind it.

A hint is given only where the pattern tells: a wrong guess costs a student more than none.
"""

from __future__ import annotations

import torch

#: How nearly constant a ratio has to be to be called a factor.
_SAME_FACTOR = 1e-3


def hint(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """What the wrong elements have in common.

    Args:
        got: the output, float64 or integer.
        expected: the right values, of the same shape.
        wrong: which elements are off; at least one is.

    Returns:
        One sentence, or None if the pattern says nothing.
    """
    rules = (_never_written, _zeros, _columns, _rows, _factor)
    return next((text for rule in rules if (text := rule(got, expected, wrong))), None)


def _never_written(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Memory that torch.empty returned holds NaN while student code runs."""
    nan = got.isnan() if got.dtype.is_floating_point else torch.zeros_like(wrong)
    if not nan.any():
        return None
    where = _where(nan)
    place = f"{where} NaN" if where else f"{int(nan.sum()):,} elements are NaN"
    return (
        f"{place}: new memory (torch.empty) is filled with NaN here, so either nothing was "
        "stored there or unwritten memory was read"
    )


def _zeros(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    if got.numel() > 1 and not got.any():
        return "every element is 0: was the buffer ever stored to?"
    return None


def _columns(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Errors confined to the trailing columns, the others right."""
    if wrong.ndim == 0 or wrong.all():
        return None
    columns = _rows_of(wrong).any(0)
    span = _span(columns)
    if span is None or span[1] != len(columns) - 1 or span[0] == 0:
        return None
    what = "columns" if wrong.ndim > 1 else "elements"
    rows = _rows_of(wrong).any(1)
    subject = f"row {int(rows.nonzero()[0])}, " if wrong.ndim == 2 and int(rows.sum()) == 1 else ""
    first, last = span
    return (
        f"{subject}{_range(what, first, last)} wrong, {_range(what, 0, first - 1)} right: "
        "is the tail masked, on load and on store?"
    )


def _rows(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str | None:
    """Errors confined to some rows, the others right."""
    if wrong.ndim != 2 or wrong.shape[0] < 2:
        return None
    rows = wrong.any(1)
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
    if wrong.ndim != 2 or wrong.shape[0] < 2 or wrong.shape[1] < 4:
        return None
    for row, mask in zip(ratio, usable, strict=True):
        values = row[mask]
        if values.numel() >= 2 and not (values.isfinite().all() and _constant(values)):
            return None
    return "each row is off by a factor of its own: look at what is computed once per row"


def _constant(ratio: torch.Tensor) -> bool:
    middle = float(ratio.median())
    return abs(middle) > 1e-6 and float((ratio / middle - 1).abs().max()) < _SAME_FACTOR


def _where(mask: torch.Tensor) -> str | None:
    """Which rows or columns a mask covers entirely, and nothing else: `rows 3…7 are`."""
    if mask.all():
        return "all elements are"
    if mask.ndim == 0:
        return None
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
