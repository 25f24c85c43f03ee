"""tl.cumsum, tl.cumprod and tl.associative_scan against torch and against a loop."""

import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, integers, normal, run, simulator_only


@triton.jit
def cumulative_kernel(x_ptr, sum_ptr, product_ptr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(x_ptr + i)
    tl.store(sum_ptr + i, tl.cumsum(x, AXIS, reverse=REVERSE))
    tl.store(product_ptr + i, tl.cumprod(x, AXIS, reverse=REVERSE))


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float16", "float32", "float64"])
def test_sums_and_products(dtype, axis, reverse):
    """Of small whole numbers, so that every order of adding gives the same; products may wrap."""
    x = integers(3, 4, 16, low=-2, high=3).to(getattr(torch, dtype))
    added, multiplied = (torch.empty_like(x) for _ in range(2))
    run(cumulative_kernel, x, added, multiplied, grid=(3,), AXIS=axis, REVERSE=reverse)
    turned = x.flip(axis + 1) if reverse else x
    wide = turned.double() if turned.is_floating_point() else turned.to(torch.int64)
    for found, f in ((added, torch.cumsum), (multiplied, torch.cumprod)):
        expected = f(wide, axis + 1).to(x.dtype)
        assert_same(found, expected.flip(axis + 1) if reverse else expected, f.__name__)


@triton.jit
def sum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i), 0))


@simulator_only("hardware adds in another order, in float32")
def test_float32_sums_are_added_up_in_float64():
    x = normal(2, 1024)
    out = torch.empty_like(x)
    sum_kernel[(2,)](x, out, N=1024)
    assert_same(out, torch.cumsum(x.double(), 1).float())


@simulator_only("hardware adds in another order")
def test_float16_sums_round_at_every_step():
    """1 + ε for ever stays at 2048 in float16, as it would in a loop; a tree gets further."""
    x = torch.ones(4096, dtype=torch.float16)
    out = torch.empty_like(x)
    sum_kernel[(1,)](x, out, N=4096)
    assert_same(out[:2048], torch.arange(1, 2049, dtype=torch.float16))
    assert out.max() == 4096
    steps = out[1:] - out[:-1]
    assert set(steps.tolist()) <= {0.0, 1.0, 2.0, 4.0}


@triton.jit
def linear(a, b, c, d):
    """(x ↦ a·x + b), then (x ↦ c·x + d)."""
    return a * c, b * c + d


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    both = (tl.load(a_ptr + i), tl.load(b_ptr + i))
    _, state = tl.associative_scan(both, 0, linear, reverse=REVERSE)
    tl.store(out_ptr + i, state)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_a_recurrence_of_two_operands(n, reverse):
    """hₜ = aₜ·hₜ₋₁ + bₜ in whole numbers: associative, not commutative."""
    a, b = (integers(5, n, low=-1, high=2, seed=seed).double() for seed in (0, 1))
    out = torch.empty_like(b)
    run(recurrence_kernel, a, b, out, grid=(5,), N=n, REVERSE=reverse)
    state, expected = torch.zeros(5, dtype=torch.float64), torch.empty_like(b)
    for t in range(n)[:: -1 if reverse else 1]:
        state = a[:, t] * state + b[:, t]
        expected[:, t] = state
    assert_same(out, expected)


@triton.jit
def later(a, b):
    """The last value that is not zero; by a branch."""
    if b != 0:
        return b
    return a


@triton.jit
def running_max(a, b):
    return tl.maximum(a, b)


@triton.jit
def other_kernel(x_ptr, last_ptr, max_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(last_ptr + i, tl.associative_scan(x, 0, later))
    tl.store(max_ptr + i, tl.associative_scan(x, 0, running_max))


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32, torch.float16])
def test_other_functions(dtype):
    x = integers(3, 32, low=-2, high=3).to(dtype) * (integers(3, 32, low=0, high=2, seed=1) > 0)
    last, largest = torch.empty_like(x), torch.empty_like(x)
    run(other_kernel, x, last, largest, grid=(3,), N=32)
    expected = x.clone()
    for t in range(1, 32):
        expected[:, t] = torch.where(x[:, t] != 0, x[:, t], expected[:, t - 1])
    assert_same(last, expected)
    assert_same(largest, torch.cummax(x.double(), 1).values.to(dtype))


@triton.jit
def masked_sum_kernel(x_ptr, n_ptr, out_ptr, N: tl.constexpr):
    """Programs of different lengths scan in different numbers of steps of a loop."""
    pid = tl.program_id(0)
    total = 0
    for start in range(0, tl.load(n_ptr + pid), N):
        i = start + tl.arange(0, N)
        mask = i < tl.load(n_ptr + pid)
        x = tl.load(x_ptr + i, mask=mask, other=0)
        tl.store(out_ptr + pid * 32 + i, total + tl.cumsum(x, 0), mask=mask)
        total += tl.sum(x)


def test_scans_in_loops_of_different_length():
    x, n = integers(32, low=-9, high=9), torch.tensor([0, 5, 8, 32], dtype=torch.int32)
    out = torch.zeros(4, 32, dtype=torch.int32)
    run(masked_sum_kernel, x, n, out, grid=(4,), N=8)
    expected = torch.cumsum(x, 0).to(torch.int32) * (torch.arange(32) < n[:, None])
    assert_same(out, expected)
