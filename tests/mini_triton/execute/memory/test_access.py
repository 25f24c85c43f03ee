"""Where tiles of pointers point: windows of a buffer, block pointers, tensor descriptors."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.memory.access import windows
from mini_triton.execute.tiles.affine import Affine
from mini_triton.execute.tiles.values import Buffer, Pointer

from tests.mini_triton.comparing import assert_same, integers, normal, until_triton


@pytest.mark.parametrize(
    ("base", "steps", "sizes"),
    [
        (torch.tensor([5]), (1,), (8,)),
        (torch.tensor([0, 100, 200]), (10, 1), (4, 8)),  # equally far apart
        (torch.tensor([30, 7, 500]), (1, 16), (8, 4)),  # anywhere
        (torch.tensor([9, 9, 9]), (2,), (8,)),
        (torch.tensor([200, 100, 0]), (0, 3), (1, 8)),
    ],
)
def test_windows_read_what_the_offsets_say(base, steps, sizes):
    flat = torch.arange(1000)
    low, high = int(base.min()), int(base.max())
    offset = Affine(torch.int64, base if len(base) > 1 else int(base), low, high, steps, sizes)
    found = windows(Pointer(Buffer("x", flat, (1000,), (1,)), offset, None, flat.dtype))
    assert found is not None
    assert_same(found.read(flat).expand(offset.dense.shape), flat[offset.dense])
    assert_same(torch.cat(found.each(flat)).expand(offset.dense.shape), flat[offset.dense])
    assert (found.lowest, found.highest) == (int(offset.dense.min()), int(offset.dense.max()))
    assert found.within(found.highest + 1)
    assert not found.within(found.highest)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.float8_e5m2])
@pytest.mark.parametrize(
    ("starts", "scattered"),
    [
        ([300, 0, 100], True),  # multiples of 100 apart
        ([0, 64, 50], False),  # of 2, so that they may overlap
        ([200, 0, 200], False),  # one of them twice
    ],
)
def test_windows_anywhere_are_stored_as_one_by_one(starts, scattered, dtype):
    base, sizes, steps = torch.tensor(starts), (3, 8), (10, 1)
    offset = Affine(torch.int64, base, min(starts), max(starts), steps, sizes)
    flat, expected = torch.zeros(1000, dtype=dtype), torch.zeros(1000, dtype=dtype)
    found = windows(Pointer(Buffer("x", flat, (1000,), (1,)), offset, None, dtype))
    assert found.scattered is scattered
    value = torch.arange(3 * 24).reshape(3, *sizes).to(dtype)
    found.writer()(flat, value)
    for start, tile in zip(starts, value, strict=True):
        expected.as_strided(sizes, steps, start).copy_(tile)
    assert_same(flat, expected)
    assert_same(found.read(flat), torch.stack([flat.as_strided(sizes, steps, s) for s in starts]))


@triton.jit
def block_pointer_kernel(
    x_ptr, out_ptr, M, N, stride, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr
):
    """Copies x (M, N) transposed, walking block pointers along a row of tiles."""
    row = tl.program_id(0) * BM
    source = tl.make_block_ptr(x_ptr, (M, N), (stride, 1), (row, 0), (BM, BN), (1, 0))
    target = tl.make_block_ptr(out_ptr, (N, M), (M, 1), (0, row), (BN, BM), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, N, BN):
        x = tl.load(source, boundary_check=(0, 1), padding_option=PADDING)
        total += tl.where(x == x, 0.0, 1.0)
        tl.store(target, tl.trans(x), boundary_check=(0, 1))
        source = tl.advance(source, (0, BN))
        target = tl.advance(target, (BN, 0))
    tl.store(out_ptr + M * N + tl.program_id(0), tl.sum(total))


@until_triton((3, 8), "there are no block pointers")
@pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_block_pointers_check_boundaries_and_pad(padding):
    x, out = normal(10, 13), torch.zeros(10 * 13 + 3)
    with mini_triton.profile() as p:
        block_pointer_kernel[(3,)](x, out, 10, 13, 13, BM=4, BN=8, PADDING=padding)
    assert_same(out[:130].view(13, 10), x.T.contiguous())
    padded = 3 * 4 * 16 - 130 if padding == "nan" else 0
    assert int(out[130:].sum()) == padded
    assert (p.loaded, p.stored) == (130, 133)


@triton.jit
def descriptor_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BM, BN])
    at_m, at_n = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([at_m, at_n], x.load([at_m, at_n]) * 2)


def test_tensor_descriptors_made_in_the_kernel():
    """The descriptor's bounds mask what lies outside, and only the rest is counted."""
    x, out = normal(10, 16), torch.zeros(10, 16)
    with mini_triton.profile() as p:
        descriptor_kernel[(3, 2)](x, out, 10, 16, BM=4, BN=16)
    assert_same(out, x * 2)
    assert (p.loaded, p.stored) == (160, 160)


@triton.jit
def indexed_kernel(x_ptr, rows_ptr, out_ptr, N: tl.constexpr):
    """Rows chosen by a tensor of indices, columns in steps that differ by program."""
    pid = tl.program_id(0)
    row = tl.load(rows_ptr + pid)
    at = x_ptr + row * N + (tl.arange(0, 8) * (pid + 1)) % N
    tl.store(out_ptr + pid * 8 + tl.arange(0, 8), tl.load(at))


def test_rows_chosen_by_an_index_and_strides_of_each_program():
    x, rows = normal(9, 32), integers(6, low=0, high=9)
    out = torch.empty(6, 8)
    indexed_kernel[(6,)](x, rows, out, N=32)
    columns = torch.arange(8) * torch.arange(1, 7)[:, None] % 32
    assert_same(out, x[rows.long()[:, None], columns])
