"""Products of any shape and type, chained, transposed, over blocks of K; exact, so in any order.

Values are small quarters: every partial sum is a number of float32, and of tf32's ten bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.mini_triton.differential.dtypes import INT32, KINDS, drawn, rounded
from tests.mini_triton.differential.programs import Output, Program, examples

_SOURCE = """\
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, c, out):
    pid = tl.program_id(0)
    m = tl.arange(0, {m})[:, None]
    n = tl.arange(0, {n})[None, :]
    total = tl.load(c + (pid * {m} + m) * {n} + n)
    for block in range({blocks}):
        k = block * {k} + tl.arange(0, {k})
        x = {x}
        y = {y}
        {product}
    tl.store(out + (pid * {m} + m) * {n} + n, total{after})
"""
_PAIRS = [
    # operands, accumulator, options
    ("int8", "int32", [""]),
    ("float16", "float32", [""]),
    ("bfloat16", "float32", [""]),
    ("float32", "float32", ['input_precision="ieee"', 'input_precision="tf32"']),
    ("float64", "float64", [""]),
    ("float8e5", "float32", [""]),
    ("float8e4nv", "float32", [""]),
]


@st.composite
def dots(draw: Any) -> Program:
    """total = c + Σ x · y, or its ReLU."""
    name, sums, options = draw(st.sampled_from(_PAIRS))
    kind, accumulator = KINDS[name], KINDS[sums]
    m, n = (draw(st.sampled_from([1, 2, 4, 16, 32])) for _ in range(2))
    k = draw(st.sampled_from([16, 32] if kind.bits > 8 else [32]))
    blocks, programs = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    a = drawn(kind, (programs, m, blocks * k), rng, tame=True)
    b = drawn(kind, (programs, blocks * k, n), rng, tame=True)
    c = drawn(accumulator, (programs, m, n), rng, tame=True)
    valid = draw(st.sampled_from([blocks * k, blocks * k - 5]))
    option = draw(st.sampled_from(options))

    zero = "0.0" if kind.is_float else "0"
    mask = "" if valid == blocks * k else f", mask={{}} < {valid}, other={zero}"
    x = f"tl.load(a + (pid * {m} + m) * {blocks * k} + k[None, :]{mask.format('k[None, :]')})"
    y = f"tl.load(b + (pid * {blocks * k} + k[:, None]) * {n} + n{mask.format('k[:, None]')})"
    if draw(st.booleans()):
        x = (
            f"tl.load(a + (pid * {m} + tl.arange(0, {m})[None, :]) * {blocks * k} + k[:, None]"
            f"{mask.format('k[:, None]')}).T"
        )
    scaled = kind.bits > 8 and kind.is_float and draw(st.booleans())
    if scaled:
        x = f"({x} * 2).to(tl.{name})"
    turned = draw(st.booleans())
    left, right = ("y.T", "x.T") if turned else ("x", "y")
    out_dtype = f", out_dtype=tl.{sums}" if sums in ("int32", "float64") else ""
    option = f", {option}" if option else ""
    product = f"tl.dot({left}, {right}{option}{out_dtype})"
    if draw(st.booleans()) and not turned:
        product = f"total = tl.dot({left}, {right}, total{option}{out_dtype})"
    else:
        product = f"total += {f'tl.trans({product})' if turned else product}"
    after = draw(st.sampled_from(["", " * 2", ".to(tl.float32)"]))
    if sums == "float64" and after.startswith(".to"):
        after = ""

    wide = np.longdouble if accumulator.is_float else np.int64
    right_sum = c.astype(wide) + (1 + scaled) * np.einsum(
        "pmk,pkn->pmn", a[:, :, :valid].astype(wide), b[:, :valid].astype(wide)
    )
    right_sum = right_sum * 2 if after == " * 2" else right_sum
    result = rounded(right_sum, accumulator) if accumulator.is_float else right_sum.astype(np.int32)
    return Program(
        _SOURCE.format(m=m, n=n, k=k, blocks=blocks, x=x, y=y, product=product, after=after),
        (programs,),
        [(kind, a), (kind, b), (accumulator, c)],
        [Output(accumulator, result, np.zeros_like(result))],
        # Of int8 the interpreter sums in int8.
        interpretable=kind.native and accumulator is not INT32,
        loaded=programs * (valid * (m + n) + m * n),
        stored=programs * m * n,
    )


@given(program=dots())
@examples(30)
def test_products(runner, program):
    runner.check(program)
