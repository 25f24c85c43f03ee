"""Triton's own library in Triton (`triton.language.standard`, `.random`) on the simulator."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import DEVICE, assert_same, integers, normal, run


# -------------------------------------------------------------------- sorting
@triton.jit
def sort_kernel(
    x_ptr, up_ptr, down_ptr, top_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    row = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    x = tl.load(x_ptr + row * N + tl.arange(0, N)[None, :])
    tl.store(up_ptr + row * N + tl.arange(0, N)[None, :], tl.sort(x))
    tl.store(down_ptr + row * N + tl.arange(0, N)[None, :], tl.sort(x, descending=True))
    tl.store(top_ptr + row * K + tl.arange(0, K)[None, :], tl.topk(x, K))


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float16, torch.float32], ids=str)
def test_sorting_and_the_largest(dtype):
    x = integers(4, 2, 32, low=0, high=40).to(dtype)
    up, down = torch.empty_like(x), torch.empty_like(x)
    top = torch.empty(4, 2, 4, dtype=dtype)
    run(sort_kernel, x, up, down, top, grid=(4,), M=2, N=32, K=4)
    expected = x.sort(-1).values
    assert_same(up, expected)
    assert_same(down, expected.flip(-1))
    assert_same(top, expected.flip(-1)[..., :4])


@triton.jit
def moving_kernel(x_ptr, y_ptr, flipped_ptr, woven_ptr, raveled_ptr):
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
    x, y = tl.load(x_ptr + i * 8 + j), tl.load(y_ptr + i * 8 + j)
    tl.store(flipped_ptr + i * 8 + j, tl.flip(x, 0))
    tl.store(woven_ptr + i * 16 + tl.arange(0, 16)[None, :], tl.interleave(x, tl.flip(y, 1)))
    tl.store(raveled_ptr + tl.arange(0, 32), tl.ravel(tl.permute(x, (1, 0))))


def test_moving_lanes():
    x, y = integers(4, 8, low=0, high=99), integers(4, 8, low=0, high=99, seed=1)
    flipped, raveled = torch.empty_like(x), torch.empty(32, dtype=x.dtype)
    woven = torch.empty(4, 16, dtype=x.dtype)
    run(moving_kernel, x, y, flipped, woven, raveled)
    assert_same(flipped, x.flip(0))
    assert_same(woven, torch.stack((x, y.flip(1)), -1).reshape(4, 16))
    assert_same(raveled, x.T.reshape(-1))


# -------------------------------------------------------------------- reductions
@triton.jit
def extremes_kernel(x_ptr, value_ptr, index_ptr, LEFT: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    high, at_high = tl.max(x, 0, return_indices=True, return_indices_tie_break_left=LEFT)
    low, at_low = tl.min(x, 0, return_indices=True, return_indices_tie_break_left=LEFT)
    tl.store(value_ptr + row * 2, high)
    tl.store(value_ptr + row * 2 + 1, low)
    tl.store(index_ptr + row * 2, at_high)
    tl.store(index_ptr + row * 2 + 1, at_low)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("dtype", [torch.int32, torch.float32], ids=str)
def test_extremes_with_their_places(dtype, left):
    """Of equal values the leftmost, if asked for; else any of them."""
    x = integers(6, 64, low=-3, high=4).to(dtype)
    values, places = torch.empty(6, 2, dtype=dtype), torch.empty(6, 2, dtype=torch.int32)
    run(extremes_kernel, x, values, places, grid=(6,), LEFT=left, N=64)
    expected = torch.stack((x.amax(1), x.amin(1)), 1)
    assert_same(values, expected)
    assert_same(x.gather(1, places.long()), expected)
    if left:
        first = [[row.index(v) for v in pair] for row, pair in
                 zip(x.tolist(), expected.tolist(), strict=True)]  # fmt: skip
        assert places.tolist() == first


@triton.jit
def linear(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def whole_tile_kernel(a_ptr, b_ptr, out_ptr, flags_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    factor, rest = tl.reduce((a, b), None, linear)
    tl.store(out_ptr, factor)
    tl.store(out_ptr + 1, rest)
    bits = tl.load(flags_ptr + i)
    tl.store(flags_ptr, tl.xor_sum(bits))
    tl.store(flags_ptr + 1, tl.max(tl.reduce_or(bits, 0), 0))


def test_reductions_of_two_operands_over_a_whole_tile():
    """Commuting with itself (all factors 1): the order is not Triton's to keep."""
    a, b = torch.ones(4, 8, dtype=torch.float64), integers(4, 8, low=-9, high=9).double()
    out, flags = torch.empty(2, dtype=torch.float64), integers(4, 8, low=0, high=255)
    xor = int(np.bitwise_xor.reduce(flags.numpy(), axis=None))
    ored = int(np.bitwise_or.reduce(flags.numpy(), axis=0).max())
    run(whole_tile_kernel, a, b, out, flags, M=4, N=8)
    assert out.tolist() == [1.0, b.sum().item()]
    assert flags.flatten()[:2].tolist() == [xor, ored]


@triton.jit
def softmax_kernel(x_ptr, out_ptr, s_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.softmax(x))
    tl.store(s_ptr + at, tl.sigmoid(x))


def test_softmax_and_sigmoid():
    x = normal(3, 64)
    soft, sigmoid = torch.empty_like(x), torch.empty_like(x)
    run(softmax_kernel, x, soft, sigmoid, grid=(3,), N=64)
    torch.testing.assert_close(soft, x.softmax(1))
    torch.testing.assert_close(sigmoid, x.sigmoid())


@triton.jit
def swizzle_kernel(out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    row, column = tl.swizzle2d(i, j, ROWS, COLUMNS, GROUP)
    tl.store(out_ptr + row * COLUMNS + column, i * COLUMNS + j)


def test_swizzled_programs():
    """The picture in Triton's documentation of `swizzle2d`."""
    out = torch.empty(4, 4, dtype=torch.int32)
    run(swizzle_kernel, out, grid=(4, 4), ROWS=4, COLUMNS=4, GROUP=2)
    assert out.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]


# -------------------------------------------------------------------- random numbers
def philox(seed, offset, rounds=10):
    """Philox4x32 of (offset, 0, 0, 0): Salmon et al. 2011, "Parallel random numbers", table 2."""
    c = [np.uint64(0)] * 4
    c[0] = offset.astype(np.uint64)
    c[1:] = [np.zeros_like(c[0])] * 3
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    low = np.uint64(0xFFFFFFFF)
    for _ in range(rounds):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & low,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & low]  # fmt: skip
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [v.astype(np.uint32) for v in c]


@triton.jit
def random_kernel(seed, bits_ptr, uniform_ptr, normal_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(bits_ptr + i * 4, a)
    tl.store(bits_ptr + i * 4 + 1, b)
    tl.store(bits_ptr + i * 4 + 2, c)
    tl.store(bits_ptr + i * 4 + 3, d)
    tl.store(uniform_ptr + i, tl.rand(seed, i))
    tl.store(normal_ptr + i, tl.randn(seed, i))


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**40 + 3])
def test_random_numbers_are_those_of_philox(seed):
    bits, uniform = torch.empty(256, 4, dtype=torch.int32), torch.empty(256)
    gauss = torch.empty(256)
    run(random_kernel, seed, bits, uniform, gauss, grid=(4,), N=64)
    expected = philox(seed, np.arange(256))
    assert_same(bits, torch.from_numpy(np.stack(expected, 1).view(np.int32)))
    first, second = (torch.from_numpy(v.view(np.int32)) for v in expected[:2])
    assert_same(uniform, (first ^ first >> 31).float() * 4.6566127342e-10)
    assert 0 <= uniform.min() <= uniform.max() < 1
    radius = torch.sqrt(-2.0 * torch.log(uniform.clamp(min=1e-7)))
    turned = radius * torch.cos(2 * torch.pi * (second ^ second >> 31) * 4.6566127342e-10)
    torch.testing.assert_close(gauss, turned, rtol=1e-4, atol=1e-5 if DEVICE == "cpu" else 1e-4)
