"""Reductions: library ones, any combine function, every axis, rounding steps, NaN and ties."""

import math

import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, integers, normal, run, simulator_only


@triton.jit
def rows_and_columns_kernel(x_ptr, rows_ptr, cols_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr):
    """rows (M,), cols (N,) and one number: sums of an (M, N) tile along each axis, and of all."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(rows_ptr + tl.arange(0, M), tl.sum(x, axis=1))
    tl.store(cols_ptr + tl.arange(0, N), tl.sum(x, axis=0))
    tl.store(all_ptr, tl.sum(x))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32], ids=str)
def test_sums_of_a_tile(dtype):
    x = integers(8, 32, low=-1000, high=1000, dtype=dtype)
    rows, cols, everything = (torch.empty(n, dtype=dtype) for n in (8, 32, 1))
    run(rows_and_columns_kernel, x, rows, cols, everything, M=8, N=32)
    assert_same(rows, x.sum(1, dtype=dtype))
    assert_same(cols, x.sum(0, dtype=dtype))
    assert_same(everything, x.sum(dtype=dtype).reshape(1))


@triton.jit
def cube_kernel(x_ptr, out_ptr, AXIS: tl.constexpr, KEEP: tl.constexpr):
    """x (4, 8, 2) → the maximum along AXIS, stored in order."""
    i = tl.arange(0, 4)[:, None, None] * 16 + tl.arange(0, 8)[None, :, None] * 2
    x = tl.load(x_ptr + i + tl.arange(0, 2)[None, None, :])
    m = tl.max(x, axis=AXIS, keep_dims=KEEP)
    size: tl.constexpr = 64 // x.shape[AXIS]
    tl.store(out_ptr + tl.arange(0, size), tl.reshape(m, (size,)))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keep", [False, True])
def test_each_axis_of_three(axis, keep):
    x = normal(4, 8, 2)
    out = torch.empty(64 // x.shape[axis])
    run(cube_kernel, x, out, AXIS=axis, KEEP=keep)
    assert_same(out, x.amax(axis).flatten())


@triton.jit
def integer_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Sum, maximum, minimum and exclusive or of int8; sums are int32 by the front end's rule."""
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(x))
    tl.store(out_ptr + 1, tl.max(x))
    tl.store(out_ptr + 2, tl.min(x))
    tl.store(out_ptr + 3, tl.xor_sum(x))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.uint32], ids=str)
def test_integer_reductions(dtype):
    x = torch.cat([integers(60, low=0, high=2**31, seed=3), torch.tensor([-1, -2, -128, 127])])
    x = x.to(torch.int8).view(torch.uint8) if dtype == torch.uint8 else x.to(torch.int32)
    x = x.view(dtype) if dtype in (torch.uint8, torch.uint32) else x.to(dtype)
    out = torch.empty(4, dtype=torch.int64)
    run(integer_kernel, x, out, BLOCK=64)
    values = [int(v) for v in x.tolist()]
    exclusive = 0
    for v in values:
        exclusive ^= v
    total = sum(values)
    if dtype == torch.int32:
        total = (total + 2**31) % 2**32 - 2**31
    if dtype == torch.uint32:
        total %= 2**32
    assert out.tolist() == [total, max(values), min(values), exclusive]


@triton.jit
def float_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """x (programs, N) → sum, max, min of each row in the dtype of x, (3, programs)."""
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    out = out_ptr + row
    tl.store(out, tl.sum(x))
    tl.store(out + tl.num_programs(0), tl.max(x))
    tl.store(out + 2 * tl.num_programs(0), tl.min(x))


@simulator_only("the order of a GPU's tree follows its layout")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sums_of_16_bit_floats_round_at_each_step(dtype):
    """Pairs of halves: what a float32 sum rounded once at the end would not give."""
    x = normal(5, 256, dtype=dtype) * 10
    out = torch.empty((3, 5), dtype=dtype)
    run(float_kernel, x, out, grid=(5,), N=256)
    tree = x
    while tree.shape[1] > 1:
        half = tree.shape[1] // 2
        tree = (tree[:, :half].float() + tree[:, half:].float()).to(dtype)
    assert_same(out[0], tree[:, 0])
    assert not torch.equal(out[0], x.double().sum(1).to(dtype))  # the test could tell
    assert_same(out[1:], torch.stack([x.amax(1), x.amin(1)]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_extremes_ignore_nan_until_all_are_nan(dtype):
    x = normal(4, 16).to(dtype)
    x[1, 3] = x[2, 0] = math.nan
    x[3] = math.nan
    x[2, 1], x[2, 2] = math.inf, -math.inf
    out = torch.empty((3, 4), dtype=dtype)
    run(float_kernel, x, out, grid=(4,), N=16)
    assert torch.isnan(out[0, 1:]).all()
    low = torch.where(x.isnan(), -math.inf, x).amax(1)
    high = torch.where(x.isnan(), math.inf, x).amin(1)
    low[3] = high[3] = math.nan
    assert_same(out[1:], torch.stack([low, high]))


@triton.jit
def larger_magnitude(a, b):
    return tl.where(tl.abs(a) >= tl.abs(b), a, b)


@triton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    """Chan, Golub and LeVeque: joins (mean, sum of squares, count) of two parts."""
    count = count_a + count_b
    delta = mean_b - mean_a
    share = count_b / count
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def clipped_sum(a, b):
    total = a + b
    if total > 100:
        total = total - 100
        while total > 50:
            total -= 7
    return total


@triton.jit
def custom_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """x (programs, M, N): along N the value of largest magnitude, mean and variance, (3, …, M)."""
    row, rows = tl.program_id(0) * M + tl.arange(0, M), tl.num_programs(0) * M
    x = tl.load(x_ptr + row[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + row, tl.reduce(x, 1, larger_magnitude))
    zero, one = tl.zeros_like(x), tl.full((M, N), 1.0, tl.float32)
    mean, m2, count = tl.reduce((x, zero, one), 1, welford)
    tl.store(out_ptr + rows + row, mean)
    tl.store(out_ptr + 2 * rows + row, m2 / count)


def test_custom_combine_functions():
    x = normal(3, 4, 64) * 5 + 2
    out = torch.empty((3, 3, 4))
    run(custom_kernel, x, out, grid=(3,), M=4, N=64)
    furthest = x.abs().argmax(2, keepdim=True)
    assert_same(out[0], x.gather(2, furthest)[..., 0])
    torch.testing.assert_close(out[1], x.mean(2))
    torch.testing.assert_close(out[2], x.var(2, correction=0))


@triton.jit
def branching_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    x = tl.load(x_ptr + row[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + row, tl.reduce(x, 1, clipped_sum))


@simulator_only("Triton 3.6 cannot lower it")
def test_a_combine_function_with_branches_and_loops():
    """Each lane takes its own way."""
    x = integers(3, 2, 16, low=0, high=100)
    out = torch.empty((3, 2), dtype=torch.int32)
    run(branching_kernel, x, out, grid=(3,), M=2, N=16)

    def combine(a, b):
        total = a + b
        if total > 100:
            total -= 100
            while total > 50:
                total -= 7
        return total

    tree = x.tolist()
    for program in tree:
        for m, row in enumerate(program):
            while len(row) > 1:
                half = len(row) // 2
                row = [combine(a, b) for a, b in zip(row[:half], row[half:], strict=True)]
            program[m] = row[0]
    assert out.tolist() == tree


@triton.jit
def arg_kernel(x_ptr, out_ptr, best_ptr, N: tl.constexpr):
    row, rows = tl.program_id(0), tl.num_programs(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    tl.store(out_ptr + row, tl.argmax(x, axis=0))
    tl.store(out_ptr + rows + row, tl.argmin(x, axis=0))
    best, at = tl.max(x, axis=0, return_indices=True)
    tl.store(best_ptr + row, best)
    tl.store(out_ptr + 2 * rows + row, at)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32], ids=str)
def test_argmax_takes_the_leftmost_of_equals(dtype):
    x = integers(20, 32, low=0, high=4, dtype=dtype)
    out, best = torch.empty((3, 20), dtype=torch.int32), torch.empty(20, dtype=dtype)
    run(arg_kernel, x, out, best, grid=(20,), N=32)
    columns = torch.arange(32)
    first = torch.where(x == x.amax(1, keepdim=True), columns, 99).amin(1)
    least = torch.where(x == x.amin(1, keepdim=True), columns, 99).amin(1)
    assert_same(out.long(), torch.stack([first, least, first]))
    assert_same(best, x.amax(1))


@triton.jit
def uniform_kernel(out_ptr, N: tl.constexpr):
    """Reductions of tiles that are the same in all lanes, or that a program does not change."""
    pid = tl.program_id(0)
    tl.store(out_ptr + pid * 4, tl.sum(tl.full((N,), 2, tl.int32)))
    tl.store(out_ptr + pid * 4 + 1, tl.sum(tl.zeros((N,), tl.int32) + pid))
    tl.store(out_ptr + pid * 4 + 2, tl.sum(tl.arange(0, N)))
    tl.store(
        out_ptr + pid * 4 + 3, tl.max(tl.arange(0, N)[:, None] + tl.arange(0, 2)[None, :] * pid)
    )


def test_tiles_that_are_the_same_in_every_lane():
    out = torch.empty((3, 4), dtype=torch.int32)
    run(uniform_kernel, out, grid=(3,), N=16)
    assert out.tolist() == [[32, 16 * p, 120, 15 + p] for p in range(3)]
