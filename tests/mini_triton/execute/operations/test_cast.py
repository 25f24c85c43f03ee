"""Casts between all dtypes against an oracle that rounds with integers of float64, and bit casts.

Sources of 16 bits and fewer are cast in full, all of their bit patterns.
"""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import DEVICE, assert_same, run

INTEGERS = [
    torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64,
]  # fmt: skip
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, E4M3, E5M2]
DTYPES = [*INTEGERS, torch.bool, *FLOATS]
#: Bits of mantissa after the point, exponent of the least normal number, greatest finite number.
FORMAT = {
    torch.float16: (10, -14, 65504.0),
    torch.bfloat16: (7, -126, torch.finfo(torch.bfloat16).max),
    torch.float32: (23, -126, torch.finfo(torch.float32).max),
    E4M3: (3, -6, 448.0),
    E5M2: (2, -14, 57344.0),
}


@triton.jit
def convert(x, out_ptr, i, mask):
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def cast_to_all_kernel(
    x_ptr, i8, i16, i32, i64, u8, u16, u32, u64, b, f16, bf16, f32, f64, e4m3, e5m2, n,
    BLOCK: tl.constexpr, WITH_INTEGERS: tl.constexpr, WITH_FLOAT64: tl.constexpr,
    WITH_EIGHT_BIT_FLOATS: tl.constexpr,
):  # fmt: skip
    """x (n,) of any dtype to a buffer (n,) of each dtype."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    if WITH_INTEGERS:
        convert(x, i8, i, mask)
        convert(x, i16, i, mask)
        convert(x, i32, i, mask)
        convert(x, i64, i, mask)
        convert(x, u8, i, mask)
        convert(x, u16, i, mask)
        convert(x, u32, i, mask)
        convert(x, u64, i, mask)
        convert(x, b, i, mask)
    convert(x, f16, i, mask)
    convert(x, bf16, i, mask)
    convert(x, f32, i, mask)
    if WITH_FLOAT64:
        convert(x, f64, i, mask)
    if WITH_EIGHT_BIT_FLOATS:
        convert(x, e4m3, i, mask)
        convert(x, e5m2, i, mask)


def bit_patterns(dtype):
    """All values of a dtype of up to 16 bits; of a wider one edges and random bits, (n,)."""
    if dtype == torch.bool:
        return torch.tensor([False, True])
    size = dtype.itemsize
    if size <= 2:
        every = torch.arange(1 << (8 * size), dtype=torch.int64)
        return every.to(torch.uint8 if size == 1 else torch.uint16).view(dtype)
    rng = np.random.default_rng(size)
    bits = rng.integers(0, 2**63, 8192, dtype=np.int64) * 2 + rng.integers(0, 2, 8192)
    random = torch.from_numpy(bits.astype(f"i{size}")).view(dtype)
    if not dtype.is_floating_point:
        powers = [s * 2**e + d for e in range(8 * size - 1) for d in (-1, 0, 1) for s in (1, -1)]
        ties = [  # 2^e and half of a last place of a 16- or 32-bit float, but for the last bit
            s * (2**e + k * 2 ** (e - m - 1)) + d
            for e in range(30, 8 * size - 1, 4)
            for m in (7, 10, 23)
            for k in (1, 3)
            for d in (-1, 0, 1)
            for s in (1, -1)
        ]
        edges = np.array([v & (2 ** (8 * size) - 1) for v in powers + ties], dtype=np.uint64)
        return torch.cat([random, torch.from_numpy(edges.astype(f"u{size}")).view(dtype)])
    return torch.cat([random, torch.cat([near_ties(target) for target in FORMAT]).to(dtype)])


def near_ties(dtype):
    """float64 values of `dtype`, the middles between neighbours, and a little beside those."""
    if dtype == torch.float32:
        values = (torch.randn(300, generator=torch.Generator().manual_seed(0))).double()
        after = torch.nextafter(values.float(), torch.tensor(torch.inf)).double()
    else:
        bits = torch.arange(0, 1 << (8 * dtype.itemsize - 1), 1 if dtype.itemsize == 1 else 61)
        kind = torch.int8 if dtype.itemsize == 1 else torch.int16
        values = bits.to(kind).view(dtype).double()
        after = (bits + 1).to(kind).view(dtype).double()
    middle = (values + after) / 2
    middle = middle[torch.isfinite(middle)]
    near = torch.cat(
        [middle, middle * (1 + 2.0**-22), middle * (1 - 2.0**-22), middle * (1 + 2.0**-50)]
    )
    special = torch.tensor(
        [0.0, torch.inf, torch.nan, 1.5, 2.5, 127.5, 128.0, 2.0**31, 2.0**63, 1e-300]
    )
    top = torch.tensor([FORMAT[dtype][2] * f for f in (1, 1 + 2.0**-12, 1.05, 1.1, 2)]).double()
    both = torch.cat([values, near, special.double(), top])
    return torch.cat([both, -both])


def rounded(x, dtype, toward_zero=False):
    """x (n,) float64 rounded to the values of `dtype`, as float64: ties to even, or toward zero."""
    if dtype == torch.float64:
        return x
    mantissa, least, greatest = FORMAT[dtype]
    with np.errstate(invalid="ignore", over="ignore"):
        exponent = np.maximum(np.frexp(x)[1] - 1, least)
        step = np.ldexp(1.0, exponent - mantissa)
        result = (np.trunc if toward_zero else np.rint)(x / step) * step
    beyond = np.abs(result) > greatest
    if dtype.itemsize == 1:  # saturates
        return np.where(beyond, np.copysign(greatest, x), result)
    infinite = np.where(toward_zero & np.isfinite(x), greatest, np.inf)
    return np.where(beyond, np.copysign(infinite, x), result)


def rounded_from_integer(value, dtype):
    """A Python integer rounded once, as float64."""
    mantissa = 52 if dtype == torch.float64 else FORMAT[dtype][0]
    excess = max(0, abs(value).bit_length() - (mantissa + 1))
    quotient, rest = divmod(abs(value), 1 << excess)
    half = (1 << excess) >> 1
    quotient += rest > half or (rest == half and excess > 0 and quotient & 1)
    result = float(quotient) * 2.0**excess * (-1 if value < 0 else 1)
    if dtype != torch.float64 and abs(result) > FORMAT[dtype][2]:
        return np.copysign(FORMAT[dtype][2] if dtype.itemsize == 1 else np.inf, result)
    return result


def expected_cast(x, dtype):
    """What casting the torch tensor x to `dtype` gives."""
    if x.dtype == dtype:
        return x
    if dtype == torch.bool:
        return x.to(torch.float64) != 0 if x.dtype.is_floating_point else x.to(torch.int64) != 0
    if x.dtype.is_floating_point and dtype.is_floating_point:
        return torch.from_numpy(rounded(x.double().numpy(), dtype)).to(dtype)
    if dtype.is_floating_point:
        values = [rounded_from_integer(int(v), dtype) for v in x.tolist()]
        return torch.tensor(values, dtype=torch.float64).to(dtype)
    limits = torch.iinfo(dtype)
    everything = (1 << limits.bits) - 1
    if x.dtype.is_floating_point:
        width = max(16, limits.bits)  # there are no conversions to 8 bits: those are cut from 16
        low, high = (
            (0, 2**width - 1) if limits.min == 0 else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
        )
        nan = 2 ** (width - 1) if x.dtype == torch.float64 or width == 64 else 0
        finite = torch.nan_to_num(x.double(), nan=0.0, posinf=1e300, neginf=-1e300)
        values = [max(low, min(high, int(v))) for v in finite.tolist()]
        values = [
            nan if missing else v for v, missing in zip(values, x.isnan().tolist(), strict=True)
        ]
    else:
        values = x.tolist()
    bits = np.array([int(v) & everything for v in values], dtype=np.uint64)
    return torch.from_numpy(bits.astype(f"u{limits.bits // 8}")).view(dtype)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_casts(source):
    """The front end has no casts between integers and 8-bit floats."""
    x = bit_patterns(source)
    if source == E5M2 and DEVICE != "cpu":  # Triton's code makes infinity 65,536 in bfloat16
        x = x[torch.isfinite(x.float())]
    n = len(x)
    outs = [torch.zeros(n, dtype=dtype) for dtype in DTYPES]
    narrow, gpu = source in (E4M3, E5M2), DEVICE != "cpu"
    with_float64 = not (narrow and gpu)  # Triton cannot lower these pairs for sm_90
    with_eight_bits = source.is_floating_point and not ((narrow or source == torch.float64) and gpu)
    run(
        cast_to_all_kernel, x, *outs, n, grid=(triton.cdiv(n, 4096),), BLOCK=4096,
        WITH_INTEGERS=not narrow, WITH_FLOAT64=with_float64, WITH_EIGHT_BIT_FLOATS=with_eight_bits,
    )  # fmt: skip
    for out, dtype in zip(outs, DTYPES, strict=True):
        if dtype in (E4M3, E5M2):
            done = with_eight_bits
        elif dtype == torch.float64:
            done = with_float64
        else:
            done = dtype.is_floating_point or not narrow
        if done:
            assert_same(out, expected_cast(x, dtype), f"{source} to {dtype}")


@triton.jit
def toward_zero_kernel(x_ptr, f16_ptr, bf16_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(f16_ptr + i, x.to(tl.float16, fp_downcast_rounding="rtz"), mask=i < n)
    tl.store(bf16_ptr + i, x.to(tl.bfloat16, fp_downcast_rounding="rtz"), mask=i < n)


def test_rounding_toward_zero():
    x = bit_patterns(torch.float32)
    outs = [torch.empty(len(x), dtype=dtype) for dtype in (torch.float16, torch.bfloat16)]
    run(toward_zero_kernel, x, *outs, len(x), grid=(triton.cdiv(len(x), 4096),), BLOCK=4096)
    for out in outs:
        right = rounded(x.double().numpy(), out.dtype, toward_zero=True)
        assert_same(out, torch.from_numpy(right).to(out.dtype), str(out.dtype))


@triton.jit
def bitcast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty, bitcast=True), mask=i < n)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (torch.float16, torch.int16), (torch.int16, torch.bfloat16), (torch.bfloat16, torch.half),
        (torch.float32, torch.int32), (torch.uint32, torch.float32), (torch.float64, torch.int64),
        (torch.uint8, E4M3), (E5M2, torch.int8),
    ],
    ids=str,
)  # fmt: skip
def test_bitcasts_keep_every_bit(source, target):
    x = bit_patterns(source)
    out = torch.zeros(len(x), dtype=target)
    run(bitcast_kernel, x, out, len(x), grid=(triton.cdiv(len(x), 4096),), BLOCK=4096)
    carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[source.itemsize]
    assert torch.equal(out.view(carrier), x.view(carrier))


@triton.jit
def round_trip_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Casts that the compiler could wrongly fold: each narrows and widens again."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x.to(tl.float16).to(tl.float32))
    tl.store(out_ptr + BLOCK + i, x.to(tl.bfloat16).to(tl.float32))
    tl.store(out_ptr + 2 * BLOCK + i, x.to(tl.int8).to(tl.float32))
    tl.store(out_ptr + 3 * BLOCK + i, x.to(tl.int32).to(tl.uint8).to(tl.float32))


def test_narrowing_and_widening_again():
    x = torch.tensor([1.0009765, -3.3, 100.7, -120.7, 1e-3, 127.0, 0.6, -0.6])
    out = torch.empty((4, 8))
    run(round_trip_kernel, x, out, BLOCK=8)
    byte = x.to(torch.int32).to(torch.uint8).float()
    assert_same(out, torch.stack([x.half().float(), x.bfloat16().float(), x.trunc(), byte]))
