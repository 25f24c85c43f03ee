"""Bytes and seconds with three significant digits, in decimal units."""

from __future__ import annotations

import math
from collections.abc import Sequence

_BYTES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_SECONDS = ("µs", "ms", "s")


def fmt_bytes(n: float) -> str:
    """A number of bytes in powers of 1000: 268,435,456 is "268 MB", 8,748,000,000 is "8.75 GB".

    Args:
        n: bytes. Whole numbers below 1000 are shown as they are ("512 B"); a fraction of a byte may
            come out of a formula, and negative numbers out of a difference.
    """
    if float(n).is_integer() and abs(n) < 1000:
        return f"{int(n)} B"
    return _with_unit(float(n), _BYTES)


def fmt_time(seconds: float) -> str:
    """A time in µs, ms or s: 0.0163 is "16.3 ms", 4e-6 is "4.00 µs".

    Args:
        seconds: seconds; below 1 ns there are fewer than three digits left.
    """
    return _with_unit(float(seconds) * 1e6, _SECONDS)


def _with_unit(value: float, units: Sequence[str]) -> str:
    """`value`, which counts the first of `units`, in the fitting one."""
    if not math.isfinite(value):
        return f"{value} {units[0]}"
    rest = list(units)
    # What is rounded to 1000 belongs to the next unit: 999,999 B is 1.00 MB, not 1000 kB.
    while len(rest) > 1 and abs(value) >= 999.5:
        value /= 1000
        del rest[0]
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    if 0 < abs(value) < 0.995:  # below the first unit
        digits = min(2 - math.floor(math.log10(abs(value))), 5)
    return f"{value:,.{digits}f} {rest[0]}"
