"""Three significant digits in the fitting unit, at every border between two."""

import math
import re

import numpy as np
import pytest
from console import fmt_bytes, fmt_time
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1234, "1.23 kB"),
        (12_345, "12.3 kB"),
        (123_456, "123 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (9_994_999, "9.99 MB"),
        (9_995_000, "10.0 MB"),
        (99_949_999, "99.9 MB"),
        (99_950_000, "100 MB"),
        (268_435_456, "268 MB"),
        (8_748_000_000, "8.75 GB"),
        (40.3e9, "40.3 GB"),
        (np.int64(2**40), "1.10 TB"),
        (4.2e18, "4.20 EB"),
        (1.25e21, "1,250 EB"),
        (0.5, "0.500 B"),
        (2.5, "2.50 B"),
        (0.0123, "0.0123 B"),
        (-268_435_456, "-268 MB"),
        (-3, "-3 B"),
        (math.inf, "inf B"),
        (math.nan, "nan B"),
    ],
)
def test_bytes(n, text):
    assert fmt_bytes(n) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 µs"),
        (4e-6, "4.00 µs"),
        (2.5e-7, "0.250 µs"),
        (1e-9, "0.00100 µs"),
        (135.8e-6, "136 µs"),
        (999.4e-6, "999 µs"),
        (999.6e-6, "1.00 ms"),
        (0.0163, "16.3 ms"),
        (0.0417, "41.7 ms"),
        (1, "1.00 s"),
        (59.99, "60.0 s"),
        (86_400, "86,400 s"),
        (-0.002, "-2.00 ms"),
    ],
)
def test_time(seconds, text):
    assert fmt_time(seconds) == text


UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18}


@given(st.integers(min_value=0, max_value=10**20))
def test_what_is_printed_is_the_number_to_half_a_digit(n):
    value, unit = fmt_bytes(n).split()
    assert float(value.replace(",", "")) * UNITS[unit] == pytest.approx(n, rel=0.005, abs=0)
    if 1000 <= n < 999.5e18:
        assert len(re.sub(r"\D", "", value)) == 3
