"""tl.map_elementwise: scalar functions that branch and loop, lane by lane."""

import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, integers, run, simulator_only


@triton.jit
def compare(a, b):
    if a < b:
        return -1
    elif a == b:
        return 0
    else:
        return 1


@triton.jit
def collatz(n):
    steps = 0
    while n > 1:
        if n % 2 == 1:
            n = 3 * n + 1
            steps += 1
        n = n // 2
        steps += 1
    return steps


@triton.jit
def divided(a, b):
    return a // b, a % b


@triton.jit
def map_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    tl.store(out_ptr + i * 4, tl.map_elementwise(compare, a, b))
    tl.store(out_ptr + i * 4 + 1, tl.map_elementwise(collatz, a))
    quotient, rest = tl.map_elementwise(divided, a, b)
    tl.store(out_ptr + i * 4 + 2, quotient)
    tl.store(out_ptr + i * 4 + 3, rest)


def steps_of(n):
    steps = 0
    while n > 1:
        n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
    return steps


def test_functions_that_branch_and_loop():
    a, b = integers(3, 16, low=1, high=40), integers(3, 16, low=1, high=40, seed=1)
    b[0, :4] = a[0, :4]
    out = torch.empty(3, 16, 4, dtype=torch.int32)
    run(map_kernel, a, b, out, grid=(3,), N=16)
    steps = torch.tensor([steps_of(n) for n in a.flatten().tolist()], dtype=torch.int32)
    assert_same(out[..., 0], torch.sign(a - b))
    assert_same(out[..., 1], steps.reshape(3, 16))
    assert_same(out[..., 2], a // b)
    assert_same(out[..., 3], a % b)


@triton.jit
def crossed(a0, a1, b0, b1):
    return a0 + b1, a1 + b0, a0 * a1, b0 * b1


@triton.jit
def packed_kernel(a_ptr, b_ptr, sums_ptr, products_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    sums, products = tl.map_elementwise(crossed, tl.load(a_ptr + i), tl.load(b_ptr + i), pack=2)
    tl.store(sums_ptr + i, sums)
    tl.store(products_ptr + i, products)


@simulator_only("hardware packs only what one thread holds")
@pytest.mark.parametrize("shape", [(1, 2), (4, 8)])
def test_packs_of_neighbouring_lanes(shape):
    a, b = integers(*shape, low=-9, high=9), integers(*shape, low=-9, high=9, seed=1)
    sums, products = torch.empty_like(a), torch.empty_like(a)
    run(packed_kernel, a, b, sums, products, M=shape[0], N=shape[1])
    assert_same(sums, a + b.reshape(-1, 2).flip(1).reshape(shape))
    both = torch.stack([v.reshape(-1, 2).prod(1) for v in (a, b)], dim=1).to(torch.int32)
    assert_same(products, both.reshape(shape))
