"""Loads and stores: every shape of mask, stride and pointer, against indexing in torch."""

import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, integers, normal, run

DTYPES = [
    torch.bool, torch.int8, torch.uint8, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2,
]  # fmt: skip


def some(dtype, *shape, seed=0):
    """Values of any dtype."""
    if dtype.is_floating_point:
        return normal(*shape, seed=seed).to(dtype)
    return integers(*shape, low=0, high=2 if dtype == torch.bool else 120, seed=seed, dtype=dtype)


@triton.jit
def masked_copy_kernel(x_ptr, mask_ptr, out_ptr, other, N: tl.constexpr, HAS_OTHER: tl.constexpr):
    """x, mask, out (P, N): a masked load and a masked store of a row."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    mask = tl.load(mask_ptr + at) != 0
    if HAS_OTHER:
        x = tl.load(x_ptr + at, mask=mask, other=other)
        tl.store(out_ptr + at, x)
    else:
        x = tl.load(x_ptr + at, mask=mask)
        tl.store(out_ptr + at, x, mask=mask)


MASKS = {
    "all": torch.ones(5, 16),
    "none": torch.zeros(5, 16),
    "prefix": (torch.arange(16) < 11).expand(5, 16),
    "suffix": (torch.arange(16) >= 3).expand(5, 16),
    "holes": (torch.arange(16) % 3 != 1).expand(5, 16),
    "prefix by program": torch.arange(16) < torch.tensor([[3], [0], [16], [7], [1]]),
    "some programs": (torch.arange(5) % 2 == 0)[:, None].expand(5, 16),
    "random": integers(5, 16, low=0, high=2),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    x, mask = normal(5, 16), MASKS[name].to(torch.int8).contiguous()
    out = torch.full((5, 16), 9.0)
    run(masked_copy_kernel, x, mask, out, -1.5, grid=(5,), N=16, HAS_OTHER=True)
    assert_same(out, torch.where(mask != 0, x, -1.5))
    out.fill_(9.0)
    run(masked_copy_kernel, x, mask, out, -1.5, grid=(5,), N=16, HAS_OTHER=False)
    assert_same(out, torch.where(mask != 0, x, 9.0))


@triton.jit
def dtype_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A contiguous, a masked and a gathered load; a contiguous, a masked and a scattered store."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    hole = (i < n) & (i % 3 != 0)
    tl.store(out_ptr + n + i, tl.load(x_ptr + i, mask=hole, other=0.0), mask=i < n)
    tl.store(out_ptr + 2 * n + (i * 7) % n, tl.load(x_ptr + (i * 5) % n, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype):
    x = some(dtype, 22)
    out = torch.zeros((3, 22), dtype=torch.uint8).to(dtype)
    run(dtype_kernel, x, out, 22, grid=(3,), BLOCK=8)
    i = torch.arange(22)
    wide, found = x.to(torch.float64), out.to(torch.float64)
    assert_same(found[0], wide)
    assert_same(found[1], torch.where(i % 3 != 0, wide, 0.0))
    scattered = torch.empty(22, dtype=torch.float64)
    scattered[i * 7 % 22] = wide[i * 5 % 22]
    assert_same(found[2], scattered)


@triton.jit
def strided_kernel(x_ptr, out_ptr, M, N, sx0, sx1, so0, so1, BM: tl.constexpr, BN: tl.constexpr):
    """out = x in tiles, each with its own strides."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (m < M) & (n < N)
    x = tl.load(x_ptr + m * sx0 + n * sx1, mask=mask, other=0.0)
    tl.store(out_ptr + m * so0 + n * so1, x, mask=mask)


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T.contiguous().T,
    "every second": lambda x: x.repeat_interleave(2, 0).repeat_interleave(2, 1)[::2, ::2],
    "columns of a wider one": lambda x: torch.cat([x, x, x], 1)[:, x.shape[1] : 2 * x.shape[1]],
    "with an offset": lambda x: torch.cat([x[:3], x])[3:],
    "one row for all": lambda x: x[:1].expand_as(x),
    "one column for all": lambda x: x[:, :1].expand_as(x),
}


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", ["contiguous", "transposed", "every second"])
def test_layouts(source, target):
    x = LAYOUTS[source](normal(10, 13))
    out = LAYOUTS[target](torch.full((10, 13), 7.0))
    strided_kernel[(3, 2)](x, out, 10, 13, *x.stride(), *out.stride(), BM=4, BN=8)
    assert_same(out.contiguous(), x.contiguous())


def test_stores_leave_what_lies_between_alone():
    whole = torch.full((20, 26), 7.0)
    out, x = whole[::2, ::2], normal(10, 13)
    strided_kernel[(3, 2)](x, out, 10, 13, *x.stride(), *out.stride(), BM=4, BN=8)
    assert_same(out.contiguous(), x)
    assert int((whole == 7).sum()) == 20 * 26 - 130


@triton.jit
def backwards_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    """Negative strides: from the last element to the first, and a tile that runs both ways."""
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + (n - 1) - i))
    last = out_ptr + 2 * N - 1
    tl.store(last - i, tl.load(x_ptr + i))
    two = i[:, None] * N - i[None, :] + (N - 1)
    tl.store(out_ptr + 2 * N + two, tl.load(x_ptr + i)[None, :] + i[:, None] * 100)


def test_negative_strides():
    x = integers(16, low=0, high=100)
    out = torch.empty(18, 16, dtype=torch.int32)
    run(backwards_kernel, x, out, 16, N=16)
    assert_same(out[:2], x.flip(0).expand(2, 16))
    assert_same(out[2:], x.flip(0) + torch.arange(16, dtype=torch.int32)[:, None] * 100)


@triton.jit
def overlapping_kernel(out_ptr, STEP: tl.constexpr, N: tl.constexpr):
    """Programs whose tiles overlap, and lanes that hit one element."""
    pid, i = tl.program_id(0), tl.arange(0, N)
    tl.store(out_ptr + pid * STEP + i, pid * 100 + i)


@pytest.mark.parametrize("step", [0, 1, 3, 7])
def test_of_overlapping_stores_the_last_program_wins(step):
    out = torch.full((40,), -1, dtype=torch.int32)
    overlapping_kernel[(5,)](out, STEP=step, N=8)
    right = torch.full((40,), -1, dtype=torch.int32)
    for pid in range(5):
        right[pid * step : pid * step + 8] = pid * 100 + torch.arange(8, dtype=torch.int32)
    assert_same(out, right)


@triton.jit
def colliding_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i % 5, tl.load(x_ptr + i))


def test_of_lanes_on_one_element_the_last_wins():
    x = integers(24, low=0, high=999)
    out = torch.empty(5, dtype=torch.int32)
    colliding_kernel[(3,)](x, out, N=8)
    assert out.tolist() == x[[20, 21, 22, 23, 19]].tolist()


@triton.jit
def in_place_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = 2x + 1, then y is read again through x if the two are one tensor."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * 2, mask=i < n)
    tl.store(y_ptr + i, tl.load(y_ptr + i, mask=i < n) + 1 + 0 * x, mask=i < n)


def test_in_place_and_aliased_arguments():
    """A loaded value stays what it was when its element is stored to later."""
    x = normal(20)
    right, y, alias = x * 2 + 1, x.clone(), x.clone()
    in_place_kernel[(3,)](y, y, 20, BLOCK=8)
    assert_same(y, right)
    in_place_kernel[(3,)](alias, alias.view(4, 5), 20, BLOCK=8)
    assert_same(alias, right)


@triton.jit
def swap_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(x_ptr + i, y)
    tl.store(y_ptr + i, x)


def test_swapping_halves_of_one_tensor():
    whole = integers(2, 32, low=0, high=99)
    right = whole.flip(0)
    swap_kernel[(4,)](whole[0], whole[1], N=8)
    assert_same(whole, right)


@triton.jit
def chosen_kernel(a_ptr, b_ptr, out_a, out_b, N: tl.constexpr):
    """Pointers into different tensors chosen by lane, by program, and for storing."""
    pid, i = tl.program_id(0), tl.arange(0, N)
    x = tl.load(tl.where(i % 2 == 0, a_ptr + i, b_ptr + i))
    source = a_ptr if pid % 2 == 0 else b_ptr
    x += 1000 * tl.load(source + pid)
    tl.store(tl.where(i < 4, out_a + pid * N + i, out_b + pid * N + i), x, mask=i != 5)


def test_pointers_that_are_chosen_at_run_time():
    a, b = integers(8, low=0, high=9), integers(8, low=10, high=20, seed=1)
    out_a, out_b = torch.zeros(3, 8, dtype=torch.int32), torch.zeros(3, 8, dtype=torch.int32)
    run(chosen_kernel, a, b, out_a, out_b, grid=(3,), N=8)
    i = torch.arange(8)
    scalars = torch.stack([a[0], b[1], a[2]])[:, None]
    x = torch.where(i % 2 == 0, a, b) + 1000 * scalars
    assert_same(out_a, torch.where(i < 4, x, 0))
    assert_same(out_b, torch.where((i >= 4) & (i != 5), x, 0))


@triton.jit
def pointer_cast_kernel(x_ptr, out_ptr, wide_ptr, N: tl.constexpr):
    """float32 read as int32 and as bytes, bytes read as int32."""
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr.to(tl.pointer_type(tl.int32)) + i))
    tl.store(out_ptr.to(tl.pointer_type(tl.uint8)) + 4 * N + i, i.to(tl.uint8))
    tl.store(wide_ptr + i, tl.load(x_ptr.to(tl.pointer_type(tl.int8)) + i))
    tl.store(wide_ptr + N + i // 4, tl.load(wide_ptr.to(tl.pointer_type(tl.int32)) + i // 4))


def test_pointer_casts():
    x = normal(16)
    out, wide = torch.zeros(20, dtype=torch.int32), torch.zeros(32, dtype=torch.int8)
    run(pointer_cast_kernel, x, out, wide, N=16)
    assert_same(out[:16], x.view(torch.int32))
    assert_same(out[16:], torch.arange(16, dtype=torch.uint8).view(torch.int32))
    assert_same(wide[:16], x.view(torch.int8)[:16])
    assert_same(wide[16:20], x.view(torch.int8)[:16].view(torch.int32).to(torch.int8))


@triton.jit
def scalar_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid, mask=pid < n, other=-3.0)
    tl.store(out_ptr + tl.num_programs(0) - 1 - pid, x, mask=pid != 2)


def test_scalar_loads_and_stores():
    x, out = normal(6), torch.zeros(8)
    run(scalar_kernel, x, out, 6, grid=(8,))
    right = torch.cat([x, torch.full((2,), -3.0)]).flip(0)
    right[5] = 0.0
    assert_same(out, right)


@triton.jit
def grouped_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    """Several rows a program, the last program's beyond the end masked off; a mask of two axes."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, N)
    mask = (rows[:, None] < 7) & (cols[None, :] < 6)
    x = tl.load(x_ptr + rows[:, None] * 6 + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols[None, :] * 7 + rows[:, None], x, mask=mask)
    tl.store(out_ptr + 42 + rows, tl.sum(x, axis=1), mask=rows < 7)


def test_masks_of_two_axes():
    x = integers(7, 6, low=0, high=9, dtype=torch.float32)
    out = torch.zeros(49)
    run(grouped_kernel, x, out, grid=(2,), ROWS=4, N=8)
    assert_same(out[:42].view(6, 7), x.T.contiguous())
    assert_same(out[42:], x.sum(1))


def test_empty_tensors_and_empty_grids():
    x = torch.empty(0)
    masked_copy_kernel[(0,)](x, x.to(torch.int8), x, 0.0, N=16, HAS_OTHER=True)
    strided_kernel[(2, 2)](x, x, 0, 0, 1, 1, 1, 1, BM=4, BN=8)
    out = torch.ones(4)
    strided_kernel[(0, 2)](out, out, 1, 1, 1, 1, 1, 1, BM=4, BN=8)
    assert_same(out, torch.ones(4))
