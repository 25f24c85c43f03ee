"""Integer arithmetic against Python's unbounded integers, cut to the width as hardware does."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import DEVICE, assert_same, integers, run

DTYPES = {
    "int8": (torch.int8, 8, True),
    "int16": (torch.int16, 16, True),
    "int32": (torch.int32, 32, True),
    "int64": (torch.int64, 64, True),
    "uint8": (torch.uint8, 8, False),
    "uint16": (torch.uint16, 16, False),
    "uint32": (torch.uint32, 32, False),
    "uint64": (torch.uint64, 64, False),
}


@triton.jit
def arithmetic_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out (13, n): one row an operation, in the order of ARITHMETIC."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask, other=1)
    out = out_ptr + i
    tl.store(out, a + b, mask=mask)
    tl.store(out + n, a - b, mask=mask)
    tl.store(out + 2 * n, a * b, mask=mask)
    tl.store(out + 3 * n, a // b, mask=mask)
    tl.store(out + 4 * n, a % b, mask=mask)
    tl.store(out + 5 * n, a & b, mask=mask)
    tl.store(out + 6 * n, a | b, mask=mask)
    tl.store(out + 7 * n, a ^ b, mask=mask)
    tl.store(out + 8 * n, a << b, mask=mask)
    tl.store(out + 9 * n, a >> b, mask=mask)
    tl.store(out + 10 * n, tl.maximum(a, b), mask=mask)
    tl.store(out + 11 * n, tl.minimum(a, b), mask=mask)
    tl.store(out + 12 * n, ~a, mask=mask)


@triton.jit
def comparison_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out (6, n) uint8, in the order of COMPARISONS."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, a == b, mask=mask)
    tl.store(out_ptr + n + i, a != b, mask=mask)
    tl.store(out_ptr + 2 * n + i, a < b, mask=mask)
    tl.store(out_ptr + 3 * n + i, a <= b, mask=mask)
    tl.store(out_ptr + 4 * n + i, a > b, mask=mask)
    tl.store(out_ptr + 5 * n + i, a >= b, mask=mask)


def truncated(a, b):
    """Quotient toward zero, of Python integers; the divisor is not 0."""
    quotient = abs(a) // abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def divided(a, b, bits):
    """Quotient as NVIDIA GPUs give it: all bits set where the divisor is 0."""
    return np.where(b == 0, (1 << bits) - 1, truncated(a, np.where(b == 0, 1, b)))


def rest(a, b, bits):
    divisor = np.where(b == 0, 1, b)
    return np.where(b == 0, a, a - divisor * truncated(a, divisor))


def amount(b, bits):
    """A shift's amount, read unsigned, its low 32 bits; beyond the width all are one."""
    b = b & 0xFFFFFFFF if bits == 64 else b
    return np.where((b < 0) | (b > bits), bits, b)


ARITHMETIC = {
    "+": lambda a, b, bits: a + b,
    "-": lambda a, b, bits: a - b,
    "*": lambda a, b, bits: a * b,
    "//": divided,
    "%": rest,
    "&": lambda a, b, bits: a & b,
    "|": lambda a, b, bits: a | b,
    "^": lambda a, b, bits: a ^ b,
    "<<": lambda a, b, bits: a << amount(b, bits),
    ">>": lambda a, b, bits: a >> amount(b, bits),
    "maximum": lambda a, b, bits: np.maximum(a, b),
    "minimum": lambda a, b, bits: np.minimum(a, b),
    "~": lambda a, b, bits: -a - 1,
}
COMPARISONS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def wrapped(values, dtype):
    """Python integers cut to the width of a torch integer dtype."""
    width = dtype.itemsize * 8
    bits = np.array([int(v) & ((1 << width) - 1) for v in values.ravel()], dtype=np.uint64)
    unsigned = torch.from_numpy(bits.astype(f"u{dtype.itemsize}").reshape(values.shape))
    return unsigned.view(dtype)


def pairs(name):
    """Every pair of 8-bit values; for wider types every pair of edges and some random pairs."""
    _dtype, bits, signed = DTYPES[name]
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    if bits == 8:
        edges = list(range(low, high))
    else:
        near = [
            low,
            low + 1,
            high - 1,
            high - 2,
            high // 2,
            0,
            1,
            2,
            3,
            7,
            10,
            bits - 1,
            bits,
            bits + 1,
        ]
        near += [-1, -2, -7, -bits] if signed else [high // 2 + 1, high - 7]
        random = integers(10, low=-(2**62), high=2**62, seed=bits).tolist()
        edges = near + [(r * 4 + 3) % (high - low) + low for r in random]
    a, b = np.meshgrid(np.array(edges, dtype=object), np.array(edges, dtype=object))
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("name", DTYPES)
def test_arithmetic(name):
    dtype, bits, _ = DTYPES[name]
    a, b = pairs(name)
    if bits == 64 and DEVICE != "cpu":  # what hardware gives depends on the code around it
        a, b = a[b != 0], b[b != 0]
    out = torch.empty((len(ARITHMETIC), len(a)), dtype=dtype)
    grid = (triton.cdiv(len(a), 512),)
    run(arithmetic_kernel, wrapped(a, dtype), wrapped(b, dtype), out, len(a), grid=grid, BLOCK=512)
    for row, (symbol, compute) in zip(out, ARITHMETIC.items(), strict=True):
        assert_same(row, wrapped(compute(a, b, bits), dtype), f"{name} {symbol}")


@pytest.mark.parametrize("name", DTYPES)
def test_comparisons(name):
    dtype = DTYPES[name][0]
    a, b = pairs(name)
    out = torch.empty((len(COMPARISONS), len(a)), dtype=torch.uint8)
    grid = (triton.cdiv(len(a), 512),)
    run(comparison_kernel, wrapped(a, dtype), wrapped(b, dtype), out, len(a), grid=grid, BLOCK=512)
    for row, (symbol, compare) in zip(out, COMPARISONS.items(), strict=True):
        assert_same(row, compare(a, b).astype(np.uint8), f"{name} {symbol}")


@triton.jit
def boolean_kernel(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    """a, b: int1; out (12, BLOCK) int32."""
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i)
    b = tl.load(b_ptr + i)
    tl.store(out_ptr + i, a & b)
    tl.store(out_ptr + BLOCK + i, a | b)
    tl.store(out_ptr + 2 * BLOCK + i, a ^ b)
    tl.store(out_ptr + 3 * BLOCK + i, a + b)
    tl.store(out_ptr + 4 * BLOCK + i, a * b)
    tl.store(out_ptr + 5 * BLOCK + i, a < b)
    tl.store(out_ptr + 6 * BLOCK + i, a >= b)
    tl.store(out_ptr + 7 * BLOCK + i, ~a)
    tl.store(out_ptr + 8 * BLOCK + i, a.to(tl.int32) - b.to(tl.int32))
    tl.store(out_ptr + 9 * BLOCK + i, tl.maximum(a, b))
    tl.store(out_ptr + 10 * BLOCK + i, tl.minimum(a, b))
    tl.store(out_ptr + 11 * BLOCK + i, a - b)


def test_booleans():
    """One bit, unsigned: true is 1, and 1 + 1 is 0."""
    a, b = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    out = torch.empty((12, 4), dtype=torch.int32)
    run(boolean_kernel, a, b, out, BLOCK=4)
    x, y = a.int(), b.int()
    expected = [x & y, x | y, x ^ y, x ^ y, x & y, (x < y).int(), (x >= y).int(), 1 - x, x - y]
    expected += [torch.maximum(x, y), torch.minimum(x, y), x ^ y]
    assert_same(out, torch.stack(expected))


@triton.jit
def high_half_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask)
    b = tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.umulhi(a, b), mask=mask)


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64"])
def test_upper_half_of_the_product(name):
    dtype, bits, _ = DTYPES[name]
    a, b = pairs(name)
    out = torch.empty(len(a), dtype=dtype)
    run(high_half_kernel, wrapped(a, dtype), wrapped(b, dtype), out, len(a), BLOCK=1024)
    top = (1 << bits) - 1
    assert_same(out, wrapped(((a & top) * (b & top)) >> bits, dtype))


@triton.jit
def unary_kernel(a_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n)
    tl.store(out_ptr + i, -a, mask=i < n)
    tl.store(out_ptr + n + i, tl.abs(a), mask=i < n)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_negation_and_absolute_value_of_the_least_integer(name):
    dtype, bits, _ = DTYPES[name]
    a = np.array([0, 1, -1, 5, -(1 << (bits - 1)), (1 << (bits - 1)) - 1], dtype=object)
    out = torch.empty((2, len(a)), dtype=dtype)
    run(unary_kernel, wrapped(a, dtype), out, len(a), BLOCK=8)
    assert_same(out, torch.stack([wrapped(-a, dtype), wrapped(abs(a), dtype)]))


@triton.jit
def scalar_kernel(out_ptr, a, b):
    tl.store(out_ptr, a // b)
    tl.store(out_ptr + 1, a % b)
    tl.store(out_ptr + 2, tl.cdiv(a, b))
    tl.store(out_ptr + 3, a * b)
    tl.store(out_ptr + 4, a.to(tl.int64) * b)


@pytest.mark.parametrize(("a", "b"), [(-7, 2), (7, -2), (-(2**31), -1), (2**31 - 1, 3), (-100, 7)])
def test_scalar_arguments(a, b):
    out = torch.empty(5, dtype=torch.int64)
    run(scalar_kernel, out, a, b)
    x, y = np.array([a], dtype=object), np.array([b], dtype=object)
    quotient = wrapped(truncated(x, y), torch.int32).long().item()
    ceiling = wrapped(
        truncated(wrapped(x + y - 1, torch.int32).numpy().astype(object), y), torch.int32
    )
    remainder = (x - y * truncated(x, y))[0]
    product = wrapped(x * y, torch.int32).long().item()
    assert out.tolist() == [quotient, remainder, ceiling.item(), product, a * b]


@triton.jit
def philox_kernel(out_ptr, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.randint(seed, i))
    tl.store(out_ptr + BLOCK + i, tl.rand(seed, i).to(tl.int32, bitcast=True))


def test_random_numbers_are_philox():
    """Ten rounds of Philox 4×32 (Salmon et al. 2011), first word, in Python integers."""
    out = torch.empty((2, 64), dtype=torch.int32)
    run(philox_kernel, out, 42, BLOCK=64)
    words = []
    for counter in range(64):
        c, key = [counter, 0, 0, 0], [42, 0]
        for _ in range(10):
            p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [
                (q >> 32) ^ c[1] ^ key[0],
                q & 0xFFFFFFFF,
                (p >> 32) ^ c[3] ^ key[1],
                p & 0xFFFFFFFF,
            ]
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        words.append(c[0])
    assert_same(out[0], wrapped(np.array(words, dtype=object), torch.int32))
    assert bool((out[1].view(torch.float32) < 1).all())
    assert bool((out[1].view(torch.float32) >= 0).all())
