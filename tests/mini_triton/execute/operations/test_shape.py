"""Operations that move lanes: transposes, reshapes, joins, splits, gathers, selections."""

import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, integers, normal, run, simulator_only


@triton.jit
def tile(x_ptr, M: tl.constexpr, N: tl.constexpr):
    """The program's (M, N) tile."""
    start = tl.program_id(0) * M * N
    return tl.load(x_ptr + start + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])


@triton.jit
def put(out_ptr, x, SIZE: tl.constexpr):
    """Stores the program's tile in row-major order."""
    tl.store(out_ptr + tl.program_id(0) * SIZE + tl.arange(0, SIZE), tl.reshape(x, (SIZE,)))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    put(out_ptr, tl.trans(tile(x_ptr, M, N)), M * N)


def test_transpose():
    x = normal(3, 4, 8)
    out = torch.empty(3, 8, 4)
    run(transpose_kernel, x, out, grid=(3,), M=4, N=8)
    assert_same(out, x.transpose(1, 2).contiguous())


@triton.jit
def permute_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    x = tl.reshape(tile(x_ptr, A, B * C), (A, B, C))
    put(out_ptr, tl.permute(x, (2, 0, 1)), A * B * C)


def test_permute_of_three_axes():
    x = normal(2, 2, 4, 8)
    out = torch.empty(2, 8, 2, 4)
    run(permute_kernel, x, out, grid=(2,), A=2, B=4, C=8)
    assert_same(out, x.permute(0, 3, 1, 2).contiguous())


@triton.jit
def reshape_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.reshape(tile(x_ptr, M, N), (N // 2, 2, M))
    put(out_ptr, x + tl.arange(0, M)[None, None, :] * 100, M * N)
    row = tl.reshape(tl.arange(0, N), (2, N // 2))  # of a formula
    put(out_ptr + tl.num_programs(0) * M * N, row, N)


def test_reshape():
    x = integers(2, 4, 16, low=0, high=99)
    out = torch.empty(2 * 64 + 2 * 16, dtype=torch.int32)
    run(reshape_kernel, x, out, grid=(2,), M=4, N=16)
    assert_same(
        out[:128].view(2, 8, 2, 4), x.view(2, 8, 2, 4) + torch.arange(4, dtype=torch.int32) * 100
    )
    assert_same(out[128:].view(2, 16), torch.arange(16, dtype=torch.int32).expand(2, 16))


@triton.jit
def join_kernel(x_ptr, y_ptr, out_ptr, halves_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    put(out_ptr, tl.join(x, y), 2 * N)
    put(out_ptr + tl.num_programs(0) * 2 * N, tl.interleave(x, y), 2 * N)
    left, right = tl.split(tl.reshape(x, (N // 2, 2)))
    put(halves_ptr, left, N // 2)
    put(halves_ptr + tl.num_programs(0) * N // 2, right, N // 2)


def test_join_interleave_and_split():
    x, y = normal(3, 8), normal(3, 8, seed=1)
    out, halves = torch.empty(2, 3, 8, 2), torch.empty(2, 3, 4)
    run(join_kernel, x, y, out, halves, grid=(3,), N=8)
    pairs = torch.stack([x, y], -1)
    assert_same(out, torch.stack([pairs, pairs]))
    assert_same(halves, torch.stack([x[:, ::2], x[:, 1::2]]))


@triton.jit
def constant_join_kernel(out_ptr, N: tl.constexpr):
    """Joins and concatenates tiles that are the same for all lanes or all programs."""
    put(out_ptr, tl.join(tl.arange(0, N), tl.full((N,), 7, tl.int32)), 2 * N)
    both = tl.cat(tl.arange(0, N), tl.arange(0, N) * 0 + tl.program_id(0), can_reorder=True)
    put(out_ptr + tl.num_programs(0) * 2 * N, both, 2 * N)
    left, right = tl.split(tl.full((N, 2), 3, tl.int32))
    put(out_ptr + tl.num_programs(0) * 4 * N, left + right, N)


@simulator_only("a GPU's tl.cat may reorder")
@pytest.mark.filterwarnings("ignore:tl.cat")
def test_tiles_that_are_the_same_everywhere_join_and_split():
    out = torch.empty(2 * (8 + 8 + 4), dtype=torch.int32)
    run(constant_join_kernel, out, grid=(2,), N=4)
    assert out[:16].tolist() == [0, 7, 1, 7, 2, 7, 3, 7] * 2
    assert out[16:32].tolist() == [0, 1, 2, 3, 0, 0, 0, 0, 0, 1, 2, 3, 1, 1, 1, 1]
    assert out[32:].tolist() == [6] * 8


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    put(out_ptr, tl.gather(tile(x_ptr, M, N), tile(index_ptr, M, N), AXIS), M * N)


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis):
    x = normal(3, 4, 8)
    index = integers(3, 4, 8, low=0, high=(4, 8)[axis])
    out = torch.empty(3, 4, 8)
    run(gather_kernel, x, index, out, grid=(3,), M=4, N=8, AXIS=axis)
    assert_same(out, x.gather(axis + 1, index.long()))


@triton.jit
def splitting_to_scalars_kernel(x_ptr, y_ptr):
    left, right = tl.split(tl.load(x_ptr + tl.arange(0, 2)))
    tl.store(y_ptr, left - right)


def test_a_pair_splits_into_two_scalars():
    y = torch.zeros(1)
    splitting_to_scalars_kernel[(1,)](torch.tensor([5.0, 2.0]), y)
    assert y.tolist() == [3.0]


@triton.jit
def flip_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    put(out_ptr, tl.flip(tile(x_ptr, M, N), dim=1), M * N)


@triton.jit
def sort_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    put(out_ptr, tl.sort(tile(x_ptr, M, N)), M * N)


def test_flip_and_sort_of_the_library():
    x = normal(2, 4, 16)
    out = torch.empty_like(x)
    run(flip_kernel, x, out, grid=(2,), M=4, N=16)
    assert_same(out, x.flip(2))
    run(sort_kernel, x, out, grid=(2,), M=4, N=16)
    assert_same(out, x.sort(2).values)


@triton.jit
def where_kernel(x_ptr, y_ptr, c_ptr, out_ptr, N: tl.constexpr):
    pid, i = tl.program_id(0), tl.arange(0, N)
    x, y, c = tl.load(x_ptr + pid * N + i), tl.load(y_ptr + i), tl.load(c_ptr + pid)
    rows = tl.num_programs(0) * N
    put(out_ptr, tl.where(i < 3, x, y), N)
    put(out_ptr + rows, tl.where(c > 0, x, y), N)  # a scalar condition
    put(out_ptr + 2 * rows, tl.where(x > y, x, 0.0), N)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_where(dtype):
    x, y = normal(4, 8).to(dtype), normal(8, seed=1).to(dtype)
    c = torch.tensor([1, 0, -2, 5], dtype=torch.int32)
    out = torch.empty(3, 4, 8, dtype=dtype)
    run(where_kernel, x, y, c, out, grid=(4,), N=8)
    columns = torch.arange(8) < 3
    expected = [torch.where(columns, x, y), torch.where(c[:, None] > 0, x, y)]
    assert_same(out, torch.stack([*expected, torch.where(x > y, x, torch.zeros_like(x))]))


@triton.jit
def eight_bit_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """8-bit floats through masks, selections, transposes and branches that part."""
    pid, i = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + pid * N + i, mask=i % 3 != 0, other=0.0)
    y = tl.where(i < 4, x, tl.load(x_ptr + i))
    if pid % 2 == 0:
        y = tl.load(x_ptr + pid * N + (N - 1 - i))
    put(out_ptr, tl.trans(tl.reshape(y, (2, N // 2))), N)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_eight_bit_floats_move_like_others(dtype):
    x = normal(4, 8).to(dtype)
    out = torch.empty(4, 8, dtype=torch.uint8).view(dtype)
    run(eight_bit_kernel, x, out, grid=(4,), N=8)
    wide, columns = x.float(), torch.arange(8)
    right = torch.where(columns % 3 != 0, wide, 0.0)
    right = torch.where(columns < 4, right, wide[0])
    right[::2] = wide[::2].flip(1)
    assert_same(out.float(), right.view(4, 2, 4).transpose(1, 2).reshape(4, 8))
