"""Tiles that programs have in common: who has which, and loads and products that hold them so."""

import mini_triton
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.memory.access import windows
from mini_triton.execute.tiles.affine import Affine
from mini_triton.execute.tiles.shared_tiles import Shared, crossed, sharing
from mini_triton.execute.tiles.values import Buffer, Pointer, dense, merge, narrow

from tests.mini_triton.comparing import assert_same, integers, normal
from tests.mini_triton.execute.test_machine import chunked as chunked  # a fixture

COLUMNS = sharing(2, np.array([0, 0, 0, 1, 1, 1]))
ROWS = sharing(3, np.array([0, 1, 2, 0, 1, 2]))


def test_every_program_sees_its_own_lanes():
    tiles = normal(3, 4, 5)
    value = Shared(tiles, ROWS)
    own = tiles[[0, 1, 2, 0, 1, 2]]
    assert value.programs == 6
    assert_same(dense(value), own)
    assert_same(dense(value.transpose((1, 0))), own.transpose(1, 2))
    assert_same(dense(value.of(-tiles)), -own)
    assert_same(dense(narrow(value, torch.tensor([5, 0]))), own[[5, 0]])
    halves = [(torch.tensor([4, 1, 0]), [normal(3, 4, 5, seed=1)]), (torch.tensor([2, 3, 5]), [0])]
    halves[1] = (halves[1][0], [narrow(value, halves[1][0])])
    (joined,) = merge(halves, 6)
    assert_same(joined[[2, 3, 5]], own[[2, 3, 5]])
    assert_same(joined[[4, 1, 0]], halves[0][1][0])


def test_repeat_tells_runs_of_equal_length():
    assert COLUMNS.repeat == 3
    assert ROWS.repeat is None
    assert sharing(3, np.array([0, 1, 2])).repeat == 1
    assert sharing(2, np.array([0, 0, 1])).repeat is None
    assert sharing(2, np.array([1, 1, 0, 0])).repeat is None


def test_crossed_numbers_each_pair_once():
    pairs = crossed(ROWS, COLUMNS)
    assert pairs is not None
    assert pairs.count == 6
    assert pairs.index.tolist() == [0, 1, 2, 3, 4, 5]  # column · rows + row
    assert crossed(COLUMNS, ROWS).index.tolist() == [0, 2, 4, 1, 3, 5]
    assert crossed(ROWS, ROWS) is None
    assert crossed(ROWS, sharing(2, np.array([0, 0, 0, 0, 1, 1]))) is None


def test_windows_are_listed_once_where_programs_share_them():
    flat = torch.arange(1000)
    base = torch.tensor([200, 100, 200, 100, 200, 100])
    offset = Affine(torch.int64, base, 100, 200, (10, 1), (4, 8))
    pointer = Pointer(Buffer("x", flat, (1000,), (1,)), offset, None, flat.dtype)
    found = windows(pointer, shared=True)
    assert (found.programs, found.digits) == (2, ((2, 100),))
    assert found.sharing.index.tolist() == [1, 0] * 3
    tiles = found.read(flat)
    assert_same(Shared(tiles, found.sharing).dense, flat[offset.dense])
    assert windows(pointer).sharing is None
    mostly_own = Affine(torch.int64, torch.tensor([0, 70, 0, 30, 9]), 0, 70, (1,), (8,))
    assert windows(Pointer(pointer.buffer, mostly_own, None, flat.dtype), shared=True).programs == 5
    one = Affine(torch.int64, torch.tensor([7, 7, 7]), 7, 7, (1,), (8,))
    found = windows(Pointer(pointer.buffer, one, None, flat.dtype), shared=True)
    assert (found.programs, found.starts, found.sharing) == (1, [7], None)


@triton.jit
def tiles_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
    TAIL: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """c (M, N) = a (M, K) · b (K, N); tiles of c in groups of GROUP rows of tiles."""
    pid = tl.program_id(0)
    in_group = GROUP * (N // BLOCK)
    pid_m = pid // in_group * GROUP + pid % GROUP
    pid_n = pid % in_group // GROUP
    rows = pid_m * BLOCK + tl.arange(0, BLOCK)
    cols = pid_n * BLOCK + tl.arange(0, BLOCK)
    total = tl.full((BLOCK, BLOCK), 1.0, tl.float32)
    for k in range(0, K, BLOCK):
        at = k + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows[:, None] * K + at[None, :], mask=at[None, :] < K - TAIL, other=2.0)
        b = tl.load(b_ptr + cols[None, :] * K + at[:, None], mask=at[:, None] < K - TAIL, other=3.0)
        if HALF:
            a, b = a.to(tl.float16), b.to(tl.float16)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total)


def tiled(a, b, group, tail=0, half=False):
    """1 + a·bᵀ, a (M, K) and b (N, K) filled up with 2 and 3 in their last `tail` columns."""
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n)
    tiles_kernel[(m // 16 * (n // 16),)](
        a, b, c, m, n, K=k, GROUP=group, BLOCK=16, TAIL=tail, HALF=half
    )
    return c


@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("tail", [0, 5])
def test_products_of_shared_tiles(group, half, tail):
    a = integers(64, 48, low=-9, high=10, dtype=torch.float32)
    b = integers(80, 48, low=-9, high=10, seed=1, dtype=torch.float32)
    with mini_triton.profile() as p:
        c = tiled(a, b, group, tail, half)
    if tail:
        a[:, -tail:], b[:, -tail:] = 2, 3
    assert_same(c, 1 + a @ b.t())
    assert p.loaded == 4 * 5 * 2 * 16 * (48 - tail)


@pytest.mark.parametrize("elements", [16 * 16, 3 * 16 * 16, 8 * 16 * 16])
def test_bits_do_not_depend_on_which_programs_run_together(chunked, elements):
    a, b = normal(64, 96), normal(64, 96, seed=1)
    together = tiled(a, b, 2)
    chunked(elements)
    apart = tiled(a, b, 2)
    assert torch.equal(together, apart)


@triton.jit
def transposed_kernel(a_ptr, b_ptr, c_ptr, stride, K: tl.constexpr):
    """c_p = a_p · bᵀ, all of float64; the rows of b are those of all programs."""
    n, k, pid = tl.arange(0, 16), tl.arange(0, K), tl.program_id(0)
    a = tl.load(a_ptr + pid * stride + n[:, None] * K + k[None, :])
    b = tl.load(b_ptr + pid // 2 * 16 * K + n[:, None] * K + k[None, :])
    c = tl.dot(a, tl.trans(b), out_dtype=tl.float64)
    tl.store(c_ptr + pid * 256 + n[:, None] * 16 + n[None, :], c)


@pytest.mark.parametrize("k", [16, 256])
def test_bits_of_float64_do_not_depend_on_how_tiles_lie_in_memory(chunked, k):
    a, b = normal(6, 16 * k + 8).double(), normal(48, k, seed=1).double()
    together, apart = (torch.empty(6, 16, 16, dtype=torch.float64) for _ in range(2))
    transposed_kernel[(6,)](a, b, together, a.stride(0), K=k)
    chunked(1)
    transposed_kernel[(6,)](a, b, apart, a.stride(0), K=k)
    assert torch.equal(together, apart)
    exact = a[:, : 16 * k].view(6, 16, k) @ b.view(3, 16, k)[[0, 0, 1, 1, 2, 2]].transpose(1, 2)
    torch.testing.assert_close(together, exact)


@triton.jit
def carried_kernel(a_ptr, out_ptr, prev_ptr, OUTER: tl.constexpr, INNER: tl.constexpr):
    """Sums products in an inner loop; an outer one keeps the sum of the round before."""
    n = tl.arange(0, 16)
    at = tl.program_id(0) * 256 + n[:, None] * 16 + n[None, :]
    a = tl.load(a_ptr + at)
    total = tl.zeros((16, 16), tl.float32)
    prev = tl.full((16, 16), 5.0, tl.float32)
    for _ in range(OUTER):
        prev = total
        for _ in range(INNER):
            total = tl.dot(a, a, total)
    tl.store(out_ptr + at, total)
    tl.store(prev_ptr + at, prev)


def test_a_sum_that_is_kept_does_not_change_when_the_next_is_added():
    a = integers(3, 16, 16, low=-3, high=4, dtype=torch.float32)
    out, prev = torch.empty_like(a), torch.empty_like(a)
    carried_kernel[(3,)](a, out, prev, OUTER=3, INNER=2)
    assert_same(out, 6 * (a @ a))
    assert_same(prev, 4 * (a @ a))


@triton.jit
def uneven_kernel(a_ptr, b_ptr, out_ptr):
    """Program p adds a_p·b p times."""
    n, pid = tl.arange(0, 16), tl.program_id(0)
    at = n[:, None] * 16 + n[None, :]
    a = tl.load(a_ptr + pid * 256 + at)
    b = tl.load(b_ptr + at)
    total = tl.zeros((16, 16), tl.float32)
    for _ in range(pid):
        total = tl.dot(a, b, total)
    tl.store(out_ptr + pid * 256 + at, total)


def test_programs_that_leave_a_loop_at_different_times_keep_their_sums():
    a = integers(5, 16, 16, low=-3, high=4, dtype=torch.float32)
    b = integers(16, 16, low=-3, high=4, seed=1, dtype=torch.float32)
    out = torch.empty_like(a)
    uneven_kernel[(5,)](a, b, out)
    assert_same(out, torch.arange(5.0)[:, None, None] * (a @ b))


@triton.jit
def indexed_kernel(x_ptr, table_ptr, out_ptr, BLOCK: tl.constexpr):
    """Tiles of x whose offsets are tiles that programs share: integers, for no product."""
    pid, n = tl.program_id(0), tl.arange(0, BLOCK)
    index = tl.load(table_ptr + pid % 2 * BLOCK * BLOCK + n[:, None] * BLOCK + n[None, :])
    at = pid * BLOCK * BLOCK + n[:, None] * BLOCK + n[None, :]
    tl.store(out_ptr + at, tl.load(x_ptr + index))


def test_what_goes_elsewhere_than_into_products_is_each_program_s_own():
    x = normal(100)
    table = integers(2, 8, 8, low=0, high=100)
    out = torch.empty(6, 8, 8)
    indexed_kernel[(6,)](x, table, out, BLOCK=8)
    assert_same(out, x[table.long()][[0, 1] * 3])
