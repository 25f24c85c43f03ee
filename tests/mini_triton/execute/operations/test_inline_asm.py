"""The PTX of Triton's own library: float8e4b15 and programmatic dependent launch."""

import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.operations.inline_asm import from_e4b15, to_e4b15

from tests.mini_triton.comparing import assert_same, run


def value_of(code):
    """A float8e4b15: a sign, 4 bits of exponent with bias 15, 3 of mantissa; nothing else."""
    exponent, mantissa = code >> 3 & 15, code & 7
    size = (8 + mantissa) * 2.0 ** (exponent - 18) if exponent else mantissa * 2.0**-17
    return -size if code & 128 else size


VALUES = [value_of(code) for code in range(256)]


@triton.jit
def widening_kernel(codes_ptr, half_ptr, single_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(codes_ptr + i).to(tl.float8e4b15, bitcast=True)
    tl.store(half_ptr + i, x.to(tl.float16))
    tl.store(single_ptr + i, x.to(tl.float32))


def test_every_value_of_e4b15():
    codes = torch.arange(256).to(torch.uint8)
    half, single = torch.empty(256, dtype=torch.float16), torch.empty(256)
    run(widening_kernel, codes, half, single, N=256)
    assert_same(half, torch.tensor(VALUES, dtype=torch.float16))
    assert_same(single, torch.tensor(VALUES))


@triton.jit
def narrowing_kernel(x_ptr, codes_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(codes_ptr + i, tl.load(x_ptr + i).to(tl.float8e4b15).to(tl.uint8, bitcast=True))


def test_every_float16_to_e4b15():
    """To nearest, ties away from zero, at most 1.75; NaN becomes that, too."""
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16)
    codes = torch.empty(2**16, dtype=torch.uint8)
    run(narrowing_kernel, x, codes, grid=(16,), N=4096)
    sizes = torch.tensor(VALUES[:127], dtype=torch.float64)
    middles = (sizes[1:] + sizes[:-1]) / 2
    magnitude = torch.nan_to_num(x.double().abs(), nan=2.0, posinf=2.0)
    nearest = torch.bucketize(magnitude, middles, right=True)  # a tie goes up
    expected = nearest + 128 * torch.signbit(x)
    assert_same(codes, expected.to(torch.uint8))


def test_there_and_back():
    codes = torch.arange(256).to(torch.int8)
    back = to_e4b15(from_e4b15(codes))
    kept = (codes & 0x7F) != 0x7F  # 1.875 is not reached
    assert_same(back[kept], codes[kept])


@triton.jit
def dependent_kernel(x_ptr):
    tl.extra.cuda.gdc_wait()
    tl.store(x_ptr, tl.load(x_ptr) + tl.extra.cuda.num_warps())
    tl.extra.cuda.gdc_launch_dependents()


@pytest.mark.parametrize("warps", [4, 8])
def test_dependent_launch_changes_nothing(warps):
    x = torch.ones(1)
    run(dependent_kernel, x, num_warps=warps)
    assert x.tolist() == [1.0 + warps]
