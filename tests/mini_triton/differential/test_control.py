"""Loops, branches and early returns that programs take differently, on int32, against Triton's
interpreter: it runs program after program in Python, so that control flow is Python's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.mini_triton.comparing import from_triton
from tests.mini_triton.differential.dtypes import INT32
from tests.mini_triton.differential.programs import Output, Program, examples

COLUMNS = 8

_HEADER = """\
import triton
import triton.language as tl


@triton.jit(noinline=True)
def apart(a, n):
    return (a ^ n) - n


@triton.jit
def within(a, n):
    return tl.where(a > n, a - n, a)


@triton.jit
def kernel(in0, in1, out0):
    pid = tl.program_id(0)
    i = tl.arange(0, {columns})
    x = tl.load(in0 + pid * {columns} + i)
    y = i * 3 - pid
    n = tl.load(in1 + pid * 3)
    m = tl.load(in1 + pid * 3 + 1)
    s = tl.load(in1 + pid * 3 + 2)
"""
_END = "    tl.store(out0 + pid * {columns} + i, x ^ y + n * 7 - s)\n"

#: Right for any int32. Sums are kept small: the interpreter makes them in 64 bits.
_TILES = [
    "x = x + y",
    "y = x * 3 - n",
    "x, y = y, x",
    "x = tl.where(y > m, x, y - 1)",
    "y = tl.minimum(x, y) ^ s",
    "y = within(y, m)",
    "x = x + tl.sum(y & 1023, 0)",
    "y = tl.where(i < n, y, x)",
]
_SCALARS = [
    "n = n + 1",
    "m = (m * 5 + n) % 7",
    "s = s ^ n",
    "s = tl.max(x & 511, 0) - m",
    "n, m = m, n",
    "m = apart(m, n)",
    "s = tl.sum(tl.where(x > y, 1, 0), 0)",
]
_CONDITIONS = ["n > 2", "m == s", "tl.sum(x & 255, 0) > s", "(n + pid) % 2 == 0"]
_CONDITIONS += ["x.dtype == tl.int32", "(n > 1) & (m < 5)", "n > 1 and m < 5", "not (s > 0)"]
_BOUNDS = ["n % 5", "m & 3", "1, 4", "m % 4, n % 4", "0, m & 7, 2", "3, n % 3, -1"]


@st.composite
def structured(draw: Any) -> Program:
    """Statements nested three deep; loops of at most 4 rounds."""
    lines: list[str] = []
    counters = iter(range(1000))

    def pick(options: list[str]) -> str:
        return options[draw(st.integers(0, len(options) - 1))]

    def block(depth: int, indent: str) -> None:
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.integers(0, 7 if depth else 3))
            if kind <= 2:
                lines.append(indent + pick(_TILES))
            elif kind == 3:
                lines.append(indent + pick(_SCALARS))
            elif kind == 4:
                lines.append(f"{indent}if {pick(_CONDITIONS)}:")
                block(depth - 1, indent + "    ")
                if draw(st.booleans()):
                    lines.append(f"{indent}else:")
                    block(depth - 1, indent + "    ")
            elif kind == 5:
                k = f"k{next(counters)}"
                bounds = pick(
                    ["n % 5", "m & 3", "1, 4", "m % 4, n % 4", "0, m & 7, 2", "3, n % 3, -1"]
                )
                loop = "tl.static_range(2)" if draw(st.integers(0, 4)) == 0 else f"range({bounds})"
                lines.append(f"{indent}for {k} in {loop}:")
                lines.append(f"{indent}    y = y + {k}")
                block(depth - 1, indent + "    ")
            elif kind == 6:
                k = f"k{next(counters)}"
                lines.append(f"{indent}{k} = n & 3")
                lines.append(f"{indent}while {k} > 0:")
                lines.append(f"{indent}    {k} -= 1")
                block(depth - 1, indent + "    ")
            else:
                lines.append(f"{indent}if {pick(_CONDITIONS[:4])}:")
                lines.append(f"{indent}    x = x - 1")
                lines.append(f"{indent}    s = s + x.shape[0]")

    block(3, "    ")
    if draw(st.integers(0, 3)) == 0:  # before a statement of the function's own
        own = [k for k, line in enumerate(lines) if line[4] != " " and "else" not in line]
        at = own[draw(st.integers(0, len(own) - 1))]
        lines[at:at] = [
            "    if n > 3:",
            "        tl.store(out0 + pid * {columns} + i, x)",
            "        return",
        ]
    programs = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tiles = rng.integers(-50, 50, (programs, COLUMNS), np.int32)
    numbers = rng.integers(0, 9, (programs, 3), np.int32)
    source = _HEADER + "".join(f"{line}\n" for line in lines) + _END
    start = np.zeros((programs, COLUMNS), np.int32)
    return Program(
        source.format(columns=COLUMNS),
        (programs,),
        [(INT32, tiles), (INT32, numbers)],
        [Output(INT32, start, start)],
    )


@from_triton((3, 7), "its interpreter takes arrays of one element for bounds; NumPy 2.4 does not")
@given(program=structured())
@examples(30)
def test_structured(runner, program):
    runner.check_alike(program)
