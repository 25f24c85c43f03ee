"""Arithmetic and conversions in the four directions of rounding, against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.mini_triton.comparing import assert_same, normal
from tests.mini_triton.execute.operations.test_libdevice import computed

MODES = ("rn", "rz", "rd", "ru")
DTYPES = {"float": torch.float32, "double": torch.float64}


def directed(exact, dtype, mode):
    """The float of `dtype` that an exact fraction rounds to."""
    kind = {torch.float32: np.float32, torch.float64: np.float64}[dtype]
    with np.errstate(over="ignore"):
        near = kind(float(exact))
    left_out = -near if math.isinf(near) else exact - Fraction(float(near))
    if mode == "rz":
        mode = "rd" if exact > 0 else "ru"
    if mode == "rd" and left_out < 0:
        near = np.nextafter(near, kind(-math.inf))
    if mode == "ru" and left_out > 0:
        near = np.nextafter(near, kind(math.inf))
    return float(near)


def all_directed(values, dtype, mode):
    """Exact fractions as a tensor of `dtype`; float32 has no subnormal numbers, as on hardware."""
    rounded = torch.tensor([directed(v, dtype, mode) for v in values], dtype=torch.float64)
    flushed = rounded.abs() < torch.finfo(torch.float32).tiny
    return torch.where(flushed, 0.0, rounded).float() if dtype == torch.float32 else rounded


def operands(dtype):
    """Three tensors of 64: ordinary numbers, far apart ones, and results that are subnormal."""
    x, y, z = (normal(64, seed=seed, dtype=torch.float64) for seed in range(3))
    small = 2.0**-70 if dtype == torch.float32 else 2.0**-520
    x[16:24] *= 2.0**30
    y[24:32] *= 2.0**-40
    x[32:48] *= small
    y[32:48] *= small
    z[32:40] *= small
    return tuple(v.to(dtype) for v in (x, y, z))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_arithmetic(dtype, mode):
    x, y, z = operands(dtype)
    a, b, c = ([Fraction(v) for v in t.tolist()] for t in (x, y, z))
    expected = {
        "add": ((x, y), [p + q for p, q in zip(a, b, strict=True)]),
        "sub": ((x, y), [p - q for p, q in zip(a, b, strict=True)]),
        "mul": ((x, y), [p * q for p, q in zip(a, b, strict=True)]),
        "div": ((x, y), [p / q for p, q in zip(a, b, strict=True)]),
        "rcp": ((x,), [1 / p for p in a]),
        "fma": ((x, y, z), [p * q + r for p, q, r in zip(a, b, c, strict=True)]),
    }
    for name, (given, values) in expected.items():
        found = computed(f"{name}_{mode}", *given)
        assert_same(found, all_directed(values, dtype, mode), f"{name}_{mode}")


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_roots_enclose_the_true_value(dtype):
    x = normal(64, dtype=dtype).abs()
    x[:4] = torch.tensor([0.0, 1.0, 4.0, 2.25], dtype=dtype)
    down, up, cut = (computed(f"sqrt_{mode}", x) for mode in ("rd", "ru", "rz"))
    for value, low, high in zip(x.tolist(), down.tolist(), up.tolist(), strict=True):
        assert Fraction(low) ** 2 <= Fraction(value) <= Fraction(high) ** 2
    assert_same(cut, down)
    assert_same(up[:4], down[:4])
    assert_same(up[4:], torch.nextafter(down[4:], torch.tensor(torch.inf, dtype=dtype)))


def test_overflow_infinities_and_zeros():
    big, one = torch.full((64,), 3e38), torch.full((64,), 1.0)
    largest = torch.finfo(torch.float32).max
    sums = {mode: computed(f"add_{mode}", big, big)[0].item() for mode in MODES}
    assert sums == {"rn": math.inf, "rz": largest, "rd": largest, "ru": math.inf}
    sums = {mode: computed(f"sub_{mode}", -big, big)[0].item() for mode in MODES}
    assert sums == {"rn": -math.inf, "rz": -largest, "rd": -math.inf, "ru": -largest}
    for mode in MODES:
        assert computed(f"add_{mode}", big * torch.inf, one)[0] == math.inf
        assert computed(f"div_{mode}", one, one * 0)[0] == math.inf
        zero = computed(f"sub_{mode}", one, one)[0]
        assert torch.signbit(zero) == (mode == "rd")
        assert not torch.signbit(computed(f"add_{mode}", one * 0, one * 0)[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", DTYPES)
def test_floats_to_integers(source, mode):
    whole = {"rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil}[mode]
    x = normal(64, dtype=DTYPES[source]) * 100
    x[:8] = torch.tensor([0.5, 1.5, -0.5, -2.5, 3e9, -3e9, 1e30, -1e30])
    for target, bits, signed in (("int", 32, 1), ("uint", 32, 0), ("ll", 64, 1), ("ull", 64, 0)):
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        expected = [min(max(whole(v), low), high) for v in x.tolist()]
        dtype = torch.int32 if bits == 32 else torch.int64
        found = computed(f"{source}2{target}_{mode}", x, dtype=dtype).tolist()
        assert [v % 2**bits for v in found] == [v % 2**bits for v in expected], target


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", ["int", "uint", "ll", "ull"])
def test_integers_to_floats(source, mode):
    bits = 32 if source in ("int", "uint") else 64
    make = np.random.default_rng(0)
    x = torch.from_numpy(make.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 64)).to(
        torch.int32 if bits == 32 else torch.int64
    )
    numbers = x.tolist()
    if source[0] == "u":
        numbers = [v % 2**bits for v in numbers]
        x = x.view(torch.uint32 if bits == 32 else torch.uint64)
    for target, dtype in DTYPES.items():
        if target == "double" and bits == 32 and mode != "rn":
            continue  # exact, so libdevice has only one of them
        found = computed(f"{source}2{target}_{mode}", x, dtype=dtype)
        assert_same(found, all_directed(map(Fraction, numbers), dtype, mode), target)


@pytest.mark.parametrize("mode", MODES)
def test_float64_to_float32(mode):
    x = normal(64, dtype=torch.float64)
    x[:4] = torch.tensor([1e300, -1e300, 1e-300, -1e-300], dtype=torch.float64)
    found = computed(f"double2float_{mode}", x, dtype=torch.float32)
    assert_same(found, all_directed(map(Fraction, x.tolist()), torch.float32, mode))
