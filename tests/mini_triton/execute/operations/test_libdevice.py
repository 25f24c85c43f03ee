"""libdevice's functions: all are there, the exact ones exact, the others within rounding."""

import inspect
import math
import re

import mini_triton
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.operations import libdevice as ours
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as theirs

from tests.mini_triton.comparing import (
    DEVICE,
    assert_same,
    integers,
    normal,
    run,
    shown_place,
    simulator_only,
)

#: libdevice's function → what Python's math has for float64.
MATH = {
    "acos": math.acos,
    "acosh": lambda x: math.acosh(1 + abs(x)),
    "asin": math.asin,
    "asinh": math.asinh,
    "atan": math.atan,
    "atanh": math.atanh,
    "cbrt": math.cbrt,
    "cos": math.cos,
    "cosh": math.cosh,
    "erf": math.erf,
    "erfc": math.erfc,
    "exp": math.exp,
    "exp2": math.exp2,
    "expm1": math.expm1,
    "lgamma": math.lgamma,
    "log1p": math.log1p,
    "sin": math.sin,
    "sinh": math.sinh,
    "tan": math.tan,
    "tanh": math.tanh,
    "tgamma": math.gamma,
}


def test_every_function_of_libdevice_is_there():
    names = set(re.findall(r'"(__nv_\w+)"', inspect.getsource(theirs)))
    assert len(names) > 300
    assert not names - ours.FUNCTIONS.keys()


@triton.jit
def unary_kernel(x_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i, getattr(libdevice, F)(tl.load(x_ptr + i)))


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i, getattr(libdevice, F)(tl.load(x_ptr + i), tl.load(y_ptr + i)))


@triton.jit
def ternary_kernel(x_ptr, y_ptr, z_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x, y, z = tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)
    tl.store(out_ptr + i, getattr(libdevice, F)(x, y, z))


KERNELS = {1: unary_kernel, 2: binary_kernel, 3: ternary_kernel}


def computed(name, *operands, dtype=None):
    """A function of libdevice on tensors of 64 elements, by a kernel of two programs."""
    out = torch.empty(64, dtype=dtype or operands[0].dtype)
    run(KERNELS[len(operands)], *operands, out, grid=(2,), F=name, N=32)
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", sorted(MATH))
def test_functions_that_python_has(name, dtype):
    x = (torch.rand(64, generator=torch.Generator().manual_seed(1)) * 1.9 - 0.95).to(dtype)
    given = 1 + x.abs() if name == "acosh" else x
    expected = torch.tensor(
        [MATH[name](v) for v in (x if name != "acosh" else given - 1).tolist()], dtype=torch.float64
    )
    found = computed(name, given).double()
    close = torch.finfo(dtype).eps * (1 if dtype == torch.float32 and DEVICE == "cpu" else 32)
    assert torch.allclose(found, expected, rtol=close, atol=1e-300)


def test_the_gamma_function_at_its_poles_and_beyond():
    x = torch.tensor([0.0, -0.0, -1.0, -2.5, 171.0, 172.0, 5.0, torch.inf] * 8).double()
    found = computed("tgamma", x)[:8].tolist()
    assert found[:2] == [math.inf, -math.inf]
    assert math.isnan(found[2])
    assert found[5:] == [math.inf, 24.0, math.inf]
    assert found[3:5] == pytest.approx([math.gamma(-2.5), math.gamma(171.0)], rel=1e-14)


def test_multiples_of_a_quarter_turn_are_exact():
    x = (torch.arange(64) / 2 - 16).float()
    assert_same(computed("sinpi", x), torch.tensor([0.0, 1.0, 0.0, -1.0] * 16))
    assert_same(computed("cospi", x), torch.tensor([1.0, 0.0, -1.0, 0.0] * 16))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 30])
def test_bessel_functions(n):
    """J and Y by Bessel's integral (DLMF 10.9.1) and the Wronskian J(n+1)·Y(n) − J(n)·Y(n+1)."""
    x = torch.linspace(0.25, 60, 64, dtype=torch.float64)
    order, after = (torch.full((64,), k, dtype=torch.int32) for k in (n, n + 1))
    found = computed("jn", order, x, dtype=torch.float64)
    turn = torch.linspace(0, torch.pi, 1025, dtype=torch.float64)
    integral = torch.cos(n * turn - x[:, None] * torch.sin(turn)).mean(1)
    ends = torch.cos(n * turn[[0, -1]]).sum() / 2
    integral = (integral * 1025 - ends) / 1024  # the trapezoid rule: the ends count half
    assert torch.allclose(found, integral, rtol=0, atol=2e-7)  # torch is off by 1e-7 at x = 6
    second = computed("yn", order, x, dtype=torch.float64)
    next_first = computed("jn", after, x, dtype=torch.float64)
    next_second = computed("yn", after, x, dtype=torch.float64)
    wronskian = next_first * second - found * next_second
    assert torch.allclose(wronskian, 2 / (torch.pi * x), rtol=1e-6)


@simulator_only("hardware takes for ever, or for what it is: a wrong number")
def test_a_bessel_function_of_an_order_that_would_take_for_ever():
    order = torch.full((64,), 2**31 - 1, dtype=torch.int32)
    with pytest.raises(mini_triton.KernelError, match=r"order 2147483647 is asked for.*up to"):
        computed("jn", order, torch.ones(64), dtype=torch.float32)


@pytest.mark.parametrize(("name", "inverse"), [("erfinv", math.erf), ("erfcinv", math.erfc)])
def test_inverse_functions(name, inverse):
    x = torch.linspace(0.01, 0.99, 64, dtype=torch.float64)
    found = computed(name, x)
    back = torch.tensor([inverse(v) for v in found.tolist()], dtype=torch.float64)
    assert torch.allclose(back, x, rtol=1e-13)
    normal_distribution = computed("normcdf", computed("normcdfinv", x))
    assert torch.allclose(normal_distribution, x, rtol=1e-13)


# -------------------------------------------------------------------- bits and integers
def of_bits(bits):
    """64 integers of a width: edges and random ones, as Python's and as a tensor."""
    edges = [0, 1, 2, 3, 7, 255, 256, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1]
    make = np.random.default_rng(0)
    some = [int.from_bytes(make.bytes(bits // 8), "little") for _ in range(64 - len(edges))]
    numbers = edges + some
    signed = [v - 2**bits if v >> (bits - 1) else v for v in numbers]
    return numbers, torch.tensor(signed, dtype=torch.int32 if bits == 32 else torch.int64)


@pytest.mark.parametrize("bits", [32, 64])
def test_functions_of_bits(bits):
    numbers, x = of_bits(bits)
    expected = {
        "clz": [bits - v.bit_length() for v in numbers],
        "popc": [v.bit_count() for v in numbers],
        "ffs": [(v & -v).bit_length() for v in numbers],
    }
    for name, values in expected.items():
        assert computed(name, x, dtype=torch.int32).tolist() == values, name
    backwards = [int(f"{v:0{bits}b}"[::-1], 2) for v in numbers]
    assert [v % 2**bits for v in computed("brev", x).tolist()] == backwards


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
def test_functions_of_two_integers(bits, signed):
    _, x = of_bits(bits)
    y = x.flip(0).roll(7)
    unsigned = {torch.int32: torch.uint32, torch.int64: torch.uint64}[x.dtype]
    a, b = ([int(v) if signed else int(v) % 2**bits for v in t.tolist()] for t in (x, y))
    given = (x, y) if signed else (x.view(unsigned), y.view(unsigned))
    expected = {"mulhi": [(p * q) >> bits for p, q in zip(a, b, strict=True)]}
    if bits == 32:
        expected["hadd"] = [(p + q) >> 1 for p, q in zip(a, b, strict=True)]
        expected["rhadd"] = [(p + q + 1) >> 1 for p, q in zip(a, b, strict=True)]
        low = [[(v % 2**24) - (2**24 if signed and v >> 23 & 1 else 0) for v in t] for t in (a, b)]
        expected["mul24"] = [p * q for p, q in zip(*low, strict=True)]
    for name, values in expected.items():
        found = computed(name, *given, dtype=x.dtype).tolist()
        assert [v % 2**bits for v in found] == [v % 2**bits for v in values], name


def test_bytes_and_distances():
    _, x = of_bits(32)
    y, z = x.roll(5), x.roll(11)
    u, v, w = ([int(t) % 2**32 for t in values.tolist()] for values in (x, y, z))

    def permuted(a, b, selector):
        octets = (a | b << 32).to_bytes(8, "little")
        nibbles = [selector >> 4 * k & 15 for k in range(4)]
        return int.from_bytes(bytes(octets[n & 7] for n in nibbles), "little")

    found = computed("byte_perm", x, y, z).tolist()
    assert [t % 2**32 for t in found] == [permuted(*t) for t in zip(u, v, w, strict=True)]
    found = computed("sad", x, y, z.view(torch.uint32), dtype=torch.int32).tolist()
    pairs = zip(x.tolist(), y.tolist(), w, strict=True)
    assert [t % 2**32 for t in found] == [(abs(a - b) + c) % 2**32 for a, b, c in pairs]


def test_floats_as_bits():
    x = normal(64)
    bits = computed("float_as_int", x, dtype=torch.int32)
    assert_same(bits, x.view(torch.int32))
    assert_same(computed("int_as_float", bits, dtype=torch.float32), x)
    wide = x.double() * math.pi
    high = computed("double2hiint", wide, dtype=torch.int32)
    low = computed("double2loint", wide, dtype=torch.int32)
    assert_same(computed("hiloint2double", high, low, dtype=torch.float64), wide)


SPECIAL = [0.0, -0.0, 1.0, -1.5, torch.inf, -torch.inf, torch.nan, 2.0**-149]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_classes_of_floats(dtype):
    x = torch.tensor(SPECIAL * 8).to(dtype)
    assert_same(computed("isnan", x, dtype=torch.bool), torch.isnan(x))
    assert_same(computed("isinf", x, dtype=torch.bool), torch.isinf(x))
    assert_same(computed("signbit", x, dtype=torch.int32), torch.signbit(x).to(torch.int32))
    exponent = computed("ilogb", x, dtype=torch.int32)[:8].tolist()
    least, most = -(2**31), 2**31 - 1
    smallest = least if dtype == torch.float32 else -149  # float32 flushes it to zero
    assert exponent == [least, least, 0, 0, most, most, least, smallest]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_exact_functions_of_two_floats(dtype):
    x = normal(64, dtype=dtype) * 100
    y = normal(64, seed=1, dtype=dtype)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    expected = {
        "fmod": [math.fmod(a, b) for a, b in pairs],
        "remainder": [math.remainder(a, b) for a, b in pairs],
        "copysign": [math.copysign(a, b) for a, b in pairs],
        "fdim": [max(a - b, 0.0) for a, b in pairs],
    }
    for name, values in expected.items():
        assert_same(computed(name, x, y), torch.tensor(values, dtype=torch.float64).to(dtype), name)
    assert_same(computed("nextafter", x, y), torch.nextafter(x, y))
    odd = torch.tensor([1.0, 3.0, -1.0, -3.0], dtype=dtype).repeat(16)
    size = integers(64, low=1, high=999).to(dtype)
    ties = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=dtype).repeat(16)  # to the even multiple
    assert_same(computed("remainder", odd * size, 2 * size), ties * size)


def test_float32_functions_flush_subnormal_numbers():
    """As on an H200; those of float64, and those that only look at bits, do not."""
    small = torch.tensor([2.0**-149, -(2.0**-130), 2.0**-127, 1.0] * 16)
    zero = torch.tensor([0.0, -0.0, 0.0, 1.0] * 16)
    one = torch.ones(64)
    for name, given in (
        ("abs", (small,)),
        ("mul_rn", (small, one)),
        ("fma", (small, one, 0 * zero)),
    ):
        found = computed(name, *given)
        assert_same(found, zero.abs() if name == "abs" else zero, name)
        assert torch.equal(torch.signbit(found), torch.signbit(zero)) == (name != "abs")
    assert_same(computed("copysign", small, one), small.abs())
    assert_same(computed("mul_rn", small.double(), one.double()), small.double())
    assert torch.isnan(computed("div_rn", zero, small)[:3]).all()


@simulator_only("hardware's scaling of subnormal numbers is off")
def test_powers_of_two_round_once():
    x = normal(64)
    n = integers(64, low=-160, high=20)
    expected = [math.ldexp(a, b) for a, b in zip(x.tolist(), n.tolist(), strict=True)]
    assert_same(computed("ldexp", x, n), torch.tensor(expected, dtype=torch.float64).float())


@tl.core.extern
def mine(x, _semantic=None):
    functions = {(tl.float32,): ("my_function", tl.float32)}
    return tl.core.extern_elementwise(
        "mine", "mine.bc", [x], functions, is_pure=True, _semantic=_semantic
    )


@triton.jit
def foreign_kernel(x_ptr):
    tl.store(x_ptr, mine(tl.load(x_ptr)))


@simulator_only("on a GPU the linker refuses them")
def test_functions_of_other_libraries_are_refused():
    with pytest.raises(
        mini_triton.UnsupportedOp,
        match=r"(?s)extern_elementwise with my_function of mine\.bc.*do: write the function with",
    ) as caught:
        foreign_kernel[(1,)](torch.zeros(1))
    assert shown_place(foreign_kernel, "mine(") in str(caught.value)
