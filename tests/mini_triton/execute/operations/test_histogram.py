"""tl.histogram, which no program shares with another."""

import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import (
    DEVICE,
    TRITON,
    assert_same,
    integers,
    run,
    simulator_only,
    until_triton,
)


@triton.jit
def histogram_kernel(x_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    pid = tl.program_id(0)
    counts = tl.histogram(tl.load(x_ptr + pid * N + tl.arange(0, N)), BINS)
    tl.store(out_ptr + pid * BINS + tl.arange(0, BINS), counts)


#: Triton 3.6 compiles no other one for a GPU, 3.9 not at all.
_OTHERS = (torch.int16, torch.int64, torch.uint8)
COUNTED = [torch.int32, *(_OTHERS if DEVICE == "cpu" and TRITON < (3, 9) else ())]


@pytest.mark.parametrize("dtype", COUNTED, ids=str)
@pytest.mark.parametrize("bins", [2, 16, 128])
def test_counts_of_each_program(bins, dtype):
    x = integers(5, 64, low=0, high=bins).to(dtype)
    out = torch.empty(5, bins, dtype=torch.int32)
    run(histogram_kernel, x, out, grid=(5,), N=64, BINS=bins)
    expected = torch.stack([torch.bincount(row.to(torch.int64), minlength=bins) for row in x])
    assert_same(out, expected.to(torch.int32))


@simulator_only("Triton 3.6 does not compile it for a GPU")
@until_triton((3, 8), "histograms are of 32-bit integers alone")
def test_bytes_are_unsigned():
    x = torch.arange(256).to(torch.uint8).repeat(2)
    out = torch.empty(256, dtype=torch.int32)
    histogram_kernel[(1,)](x, out, N=512, BINS=256)
    assert out.tolist() == [2] * 256


@simulator_only("Triton leaves it undefined")
def test_what_lies_outside_is_counted_nowhere():
    x = torch.tensor([[0, 1, 7, 8, -1, 2**31 - 1, -(2**31), 1]], dtype=torch.int32)
    out = torch.empty(1, 8, dtype=torch.int32)
    histogram_kernel[(1,)](x, out, N=8, BINS=8)
    assert out.tolist() == [[1, 2, 0, 0, 0, 0, 0, 1]]


@triton.jit
def masked_kernel(x_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    """Every program counts the values below its number, of one and the same tile."""
    pid = tl.program_id(0)
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + pid * BINS + tl.arange(0, BINS), tl.histogram(x, BINS, mask=x < pid))


def test_a_mask():
    x, out = integers(128, low=0, high=16), torch.empty(5, 16, dtype=torch.int32)
    run(masked_kernel, x, out, grid=(5,), N=128, BINS=16)
    counts = torch.bincount(x, minlength=16).to(torch.int32)
    assert_same(out, counts * (torch.arange(16) < torch.arange(5)[:, None]))
