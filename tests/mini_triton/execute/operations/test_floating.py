"""Floats: correctly rounded basics, NaN and infinities, comparisons, functions of `math`."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import TRITON, assert_same, normal, run

FLOATS = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "fp64": torch.float64,
}
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    3.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-8,
    -2.5,
    60000.0,
    1e-40,
]


def special_pairs(dtype):
    """Every pair of special values, and normal values of very different size, (n,) each."""
    values = torch.tensor(SPECIAL, dtype=torch.float64).to(dtype)
    a, b = (t.flatten() for t in torch.meshgrid(values, values, indexing="ij"))
    scale = torch.exp2(torch.arange(64, dtype=torch.float64) % 13 - 6)
    x, y = normal(64, seed=1).double() * scale, normal(64, seed=2).double()
    return torch.cat([a, x.to(dtype)]), torch.cat([b, y.to(dtype)])


@triton.jit
def arithmetic_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, a + b, mask=mask)
    tl.store(out_ptr + n + i, a - b, mask=mask)
    tl.store(out_ptr + 2 * n + i, a * b, mask=mask)
    tl.store(out_ptr + 3 * n + i, -a, mask=mask)
    tl.store(out_ptr + 4 * n + i, tl.abs(a), mask=mask)


@pytest.mark.parametrize("name", FLOATS)
def test_arithmetic_rounds_once(name):
    """Sums and products of 16-bit floats are exact in float64, so rounding those once is right."""
    a, b = special_pairs(FLOATS[name])
    n = len(a)
    out = torch.empty((5, n), dtype=a.dtype)
    run(arithmetic_kernel, a, b, out, n, BLOCK=256)
    x, y = a.double(), b.double()
    negative = 0.0 - x if TRITON < (3, 9) else -x  # of 0: up to 3.8, −x is 0 − x
    expected = torch.stack([x + y, x - y, x * y, negative, x.abs()]).to(a.dtype)
    assert_same(out, expected)
    zero = (out == 0) & (expected == 0)
    assert torch.equal(torch.signbit(out[zero]), torch.signbit(expected[zero]))


@triton.jit
def division_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.math.div_rn(a, b), mask=mask)
    tl.store(out_ptr + n + i, tl.math.sqrt_rn(a), mask=mask)
    tl.store(out_ptr + 2 * n + i, a % b, mask=mask)


def test_division_and_root_round_once():
    a, b = special_pairs(torch.float32)
    out = torch.empty((3, len(a)))
    run(division_kernel, a, b, out, len(a), BLOCK=256)
    assert_same(out[0], (a.double() / b.double()).float(), "div_rn")
    assert_same(out[1], a.double().sqrt().float(), "sqrt_rn")
    usual = torch.isfinite(a) & torch.isfinite(b) & (b.abs() > 1e-3)
    assert_same(out[2][usual], torch.fmod(a, b)[usual], "%")


def fused(a, b, c):
    """The float nearest to a·b + c in the numpy type of the arguments, by exact fractions."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    kind = type(a)
    near = kind(float(exact)) if kind is not np.float64 else kind(exact)
    around = [near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))]

    def distance(value):
        mantissa_is_odd = int(np.array(value).view(f"i{value.itemsize}")) & 1
        return abs(Fraction(float(value)) - exact), mantissa_is_odd

    return min(around, key=distance)


@triton.jit
def fma_kernel(a_ptr, b_ptr, c_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.fma(a, b, tl.load(c_ptr + i, mask=mask)), mask=mask)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_fma_rounds_once(kind):
    """Random terms that cancel, and sums half-way between two floats but for a tiny term."""
    bits = np.finfo(kind).nmant
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(200).astype(kind) for _ in range(2))
    c = -a * b
    small = kind(2.0 ** -(bits // 2 + 1))  # its square is half of the last place of 1, or a quarter
    tiny = kind(2.0 ** -(bits - 2))
    a[:4], b[:4] = (
        small,
        kind(2.0 ** -(bits - bits // 2)) * np.array([1 - tiny, 1 + tiny] * 2, kind),
    )
    c[:4] = 1, 1, 1 + kind(2.0**-bits), 1 + kind(2.0**-bits)
    a[4:8], b[4:8], c[4:8] = a[:4], -b[:4], c[:4]
    out = torch.empty(len(a), dtype=torch.from_numpy(a).dtype)
    run(fma_kernel, *(torch.from_numpy(v) for v in (a, b, c)), out, len(a), BLOCK=256)
    expected = np.array([fused(x, y, z) for x, y, z in zip(a, b, c, strict=True)], dtype=kind)
    assert_same(out, expected)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_fma_in_float32_is_not_rounded_by_way_of_float64(sign):
    """1 + 2⁻²³ + 2⁻²⁴ − 2⁻⁵⁴ is below the middle of two floats; in float64 it is the middle."""
    a, b = torch.tensor([2.0**-12 * (1 + 2.0**-15)]), torch.tensor([2.0**-12 * (1 - 2.0**-15)])
    out = torch.empty(1)
    run(fma_kernel, a, sign * b, sign * torch.tensor([1 + 2.0**-23]), out, 1, BLOCK=1)
    assert out.item() == sign * (1 + 2.0**-23)


@triton.jit
def extremes_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.maximum(a, b), mask=mask)
    tl.store(out_ptr + n + i, tl.minimum(a, b), mask=mask)
    keep: tl.constexpr = tl.PropagateNan.ALL
    tl.store(out_ptr + 2 * n + i, tl.maximum(a, b, propagate_nan=keep), mask=mask)
    tl.store(out_ptr + 3 * n + i, tl.minimum(a, b, propagate_nan=keep), mask=mask)
    tl.store(out_ptr + 4 * n + i, tl.clamp(a, -0.75, 1.0), mask=mask)
    tl.store(out_ptr + 5 * n + i, tl.clamp(a, -0.75, 1.0, propagate_nan=keep), mask=mask)


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32"])
def test_extremes_ignore_or_propagate_nan(name):
    a, b = special_pairs(FLOATS[name])
    out = torch.empty((6, len(a)), dtype=a.dtype)
    run(extremes_kernel, a, b, out, len(a), BLOCK=256)
    expected = [torch.fmax(a, b), torch.fmin(a, b), torch.maximum(a, b), torch.minimum(a, b)]
    clamped = a.clamp(-0.75, 1.0)  # torch's keeps NaN
    expected += [torch.where(a.isnan(), -0.75, clamped).to(a.dtype), clamped]
    for row, right, what in zip(
        out, expected, ("max", "min", "max all", "min all", "clamp", "clamp all"), strict=True
    ):
        assert_same(row, right, f"{name} {what}")


@triton.jit
def comparison_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, a == b, mask=mask)
    tl.store(out_ptr + n + i, a != b, mask=mask)
    tl.store(out_ptr + 2 * n + i, a < b, mask=mask)
    tl.store(out_ptr + 3 * n + i, a <= b, mask=mask)
    tl.store(out_ptr + 4 * n + i, a > b, mask=mask)
    tl.store(out_ptr + 5 * n + i, a >= b, mask=mask)
    tl.store(out_ptr + 6 * n + i, not (a < b), mask=mask)  # may become an unordered predicate
    tl.store(out_ptr + 7 * n + i, (a == a) & (b == b), mask=mask)
    tl.store(out_ptr + 8 * n + i, a != a, mask=mask)


@pytest.mark.parametrize("name", FLOATS)
def test_comparisons_with_nan(name):
    a, b = special_pairs(FLOATS[name])
    out = torch.empty((9, len(a)), dtype=torch.uint8)
    run(comparison_kernel, a, b, out, len(a), BLOCK=256)
    both = ~a.isnan() & ~b.isnan()
    expected = [a == b, a != b, a < b, a <= b, a > b, a >= b, ~(a < b), both, a.isnan()]
    assert_same(out, torch.stack(expected).to(torch.uint8))


@triton.jit
def functions_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.exp(x), mask=mask)
    tl.store(out_ptr + n + i, tl.exp2(x), mask=mask)
    tl.store(out_ptr + 2 * n + i, tl.log(x), mask=mask)
    tl.store(out_ptr + 3 * n + i, tl.log2(x), mask=mask)
    tl.store(out_ptr + 4 * n + i, tl.sin(x), mask=mask)
    tl.store(out_ptr + 5 * n + i, tl.cos(x), mask=mask)
    tl.store(out_ptr + 6 * n + i, tl.sqrt(x), mask=mask)
    tl.store(out_ptr + 7 * n + i, tl.rsqrt(x), mask=mask)
    tl.store(out_ptr + 8 * n + i, tl.erf(x), mask=mask)
    tl.store(out_ptr + 9 * n + i, tl.sigmoid(x), mask=mask)
    tl.store(out_ptr + 10 * n + i, 1 / x, mask=mask)


@triton.jit
def roundings_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.floor(x), mask=i < n)
    tl.store(out_ptr + n + i, tl.ceil(x), mask=i < n)


FUNCTIONS = [
    torch.exp, torch.exp2, torch.log, torch.log2, torch.sin, torch.cos, torch.sqrt, torch.rsqrt,
    torch.erf, torch.sigmoid, torch.reciprocal,
]  # fmt: skip


def test_functions_of_float32():
    """Within a few units in the last place, as far as hardware's own are; limits exact."""
    inputs = [
        normal(200).double() * 3,
        torch.tensor([*SPECIAL[:9], 80.0, -80.0], dtype=torch.float64),
    ]
    x = torch.cat(inputs).float()
    out = torch.empty((len(FUNCTIONS), len(x)))
    run(functions_kernel, x, out, len(x), BLOCK=256)
    for row, function in zip(out, FUNCTIONS, strict=True):
        exact = function(x.double())
        torch.testing.assert_close(row.double(), exact, rtol=2e-6, atol=1e-7, equal_nan=True)


def test_floor_and_ceil():
    x = torch.tensor([*SPECIAL[:-1], 0.49999997, 2.5, -0.3, 8388609.0])
    out = torch.empty((2, len(x)))
    run(roundings_kernel, x, out, len(x), BLOCK=32)
    assert_same(out, torch.stack([x.floor(), x.ceil()]))


@triton.jit
def softmax_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.softmax(tl.load(x_ptr + i)))


def test_softmax_of_the_library():
    x = normal(6, 64)
    out = torch.empty_like(x)
    run(softmax_kernel, x, out, grid=(6,), BLOCK=64)
    torch.testing.assert_close(out, torch.softmax(x, 1))


@triton.jit
def mixed_kernel(x_ptr, out_ptr, scale, BLOCK: tl.constexpr):
    """The front end's promotions: bf16 times a literal stays bf16, plus an integer widens."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x * 1.1)
    tl.store(out_ptr + BLOCK + i, x.to(tl.float32) * 1.1)
    tl.store(out_ptr + 2 * BLOCK + i, x * scale)
    tl.store(out_ptr + 3 * BLOCK + i, x + i)


def test_promotions_of_the_front_end():
    x = normal(64, dtype=torch.bfloat16)
    out = torch.empty((4, 64))
    run(mixed_kernel, x, out, 0.3, BLOCK=64)
    narrow = (x.double() * torch.tensor(1.1).bfloat16().double()).bfloat16().float()
    assert_same(
        out, torch.stack([narrow, x.float() * 1.1, x.float() * 0.3, x + torch.arange(64.0)])
    )


def test_infinite_and_nan_arguments():
    """Scalar floats arrive whole: infinities and NaN too."""
    out = torch.empty((4, 1))
    for scale in (math.inf, -math.inf, math.nan):
        run(mixed_kernel, torch.ones(1), out, scale, BLOCK=1)
        assert_same(out[2], torch.tensor([scale]))
