"""Kernels that take addresses from memory reach the tensors behind them, as on a GPU."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.backend.pointed_to import pointed_to

from tests.mini_triton.comparing import assert_same, integers, normal, simulator_only

pytestmark = simulator_only("on a GPU every address can be reached")


def addresses(tensors):
    return torch.tensor([t.data_ptr() for t in tensors])


@triton.jit
def grouped_kernel(
    a_ptrs, b_ptrs, c_ptrs, sizes_ptr, GROUPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    """Products of matrices of several sizes, tile by tile over all of them."""
    tile = tl.program_id(0)
    last_end = 0
    for group in range(GROUPS):
        rows = tl.load(sizes_ptr + group * 3)
        columns = tl.load(sizes_ptr + group * 3 + 1)
        depth = tl.load(sizes_ptr + group * 3 + 2)
        tiles = tl.cdiv(rows, M) * tl.cdiv(columns, N)
        while tile >= last_end and tile < last_end + tiles:
            a = tl.load(a_ptrs + group).to(tl.pointer_type(tl.float32))
            b = tl.load(b_ptrs + group).to(tl.pointer_type(tl.float32))
            c = tl.load(c_ptrs + group).to(tl.pointer_type(tl.float32))
            own = tile - last_end
            i = own // tl.cdiv(columns, N) * M + tl.arange(0, M)[:, None]
            j = own % tl.cdiv(columns, N) * N + tl.arange(0, N)[None, :]
            total = tl.zeros((M, N), tl.float32)
            for k in range(0, depth, 16):
                at = k + tl.arange(0, 16)
                left = tl.load(
                    a + i * depth + at[None, :], mask=(i < rows) & (at[None, :] < depth), other=0.0
                )
                right = tl.load(
                    b + at[:, None] * columns + j,
                    mask=(at[:, None] < depth) & (j < columns),
                    other=0.0,
                )
                total += tl.dot(left, right, input_precision="ieee")
            tl.store(c + i * columns + j, total, mask=(i < rows) & (j < columns))
            tile += tl.num_programs(0)
        last_end += tiles


def test_a_grouped_product_by_lists_of_addresses():
    sizes = [(32, 16, 48), (20, 40, 16), (16, 16, 7)]
    a = [integers(m, k, low=-9, high=9, dtype=torch.float32) for m, n, k in sizes]
    b = [integers(k, n, low=-9, high=9, seed=1, dtype=torch.float32) for m, n, k in sizes]
    c = [torch.zeros(m, n) for m, n, k in sizes]
    with mini_triton.profile() as p:
        grouped_kernel[(3,)](
            *map(addresses, (a, b, c)), torch.tensor(sizes, dtype=torch.int32), 3, M=16, N=16
        )
    for left, right, found in zip(a, b, c, strict=True):
        assert_same(found, left @ right)
    (launch,) = p.launches
    assert launch.tensors["c_ptrs[1]"].stored == 20 * 40
    assert launch.tensors["a_ptrs[2]"].loaded == 16 * 7


@triton.jit
def add_one_kernel(address, N: tl.constexpr):
    x_ptr = address.to(tl.pointer_type(tl.float32)) + tl.arange(0, N)
    tl.store(x_ptr, tl.load(x_ptr) + 1.0)


def test_an_address_as_a_number_and_inside_a_tensor():
    x = torch.zeros(8)
    add_one_kernel[(1,)](x.data_ptr(), N=8)
    add_one_kernel[(1,)](x[4:].data_ptr(), N=4)
    assert x.tolist() == [1.0] * 4 + [2.0] * 4


def test_beyond_the_end_and_where_nothing_is():
    x = torch.zeros(8)
    with pytest.raises(mini_triton.OutOfBounds, match=r"lies in no tensor of this launch"):
        add_one_kernel[(1,)](x.data_ptr() + 16, N=8)
    assert not x.any()
    with pytest.raises(mini_triton.OutOfBounds, match=r"pass the tensor that it belongs to"):
        add_one_kernel[(1,)](2**40, N=8)


@triton.jit
def atomics_kernel(addresses_ptr, old_ptr):
    """Updates through one tile of pointers into two tensors."""
    i = tl.arange(0, 8)
    where = tl.load(addresses_ptr + i // 4).to(tl.pointer_type(tl.int32)) + i % 4
    tl.store(old_ptr + i, tl.atomic_add(where, i))


def test_updates_through_addresses():
    x, y = (integers(4, low=0, high=99, seed=seed) for seed in (0, 1))
    before = torch.cat((x, y))
    old = torch.empty(8, dtype=torch.int32)
    atomics_kernel[(1,)](addresses((x, y)), old)
    assert_same(old, before)
    assert_same(torch.cat((x, y)), before + torch.arange(8, dtype=torch.int32))


def test_where_tensors_lay_for_who_made_the_launch():
    """A launch from elsewhere says where its tensors were; addresses in memory mean those."""
    launches = []

    class Recorder:
        def launch(self, launch):
            launches.append(launch)
            return mini_triton.LaunchRecord(launch.kernel, launch.grid)

    x = normal(8)
    before = mini_triton.set_device(Recorder())
    try:
        add_one_kernel[(1,)](x.data_ptr(), N=8)
    finally:
        mini_triton.set_device(before)
    (launch,) = launches
    moved = x.clone()
    launch.args[-1] = moved
    launch.addresses = {len(launch.args) - 1: x.data_ptr()}
    mini_triton.LocalDevice().launch(launch)
    assert_same(moved, x + 1.0)


def test_the_tensor_is_meant_not_the_bytes_that_it_was_read_into():
    frame = torch.zeros(256, dtype=torch.uint8)
    whole = frame[64:192]
    x = whole.view(torch.float32)
    part = x[:4]
    found = pointed_to(["address"], [x.data_ptr()])
    assert list(found) == ["address[0]"]
    assert found["address[0]"].dtype == torch.float32
    assert found["address[0]"].shape == x.shape
    assert pointed_to(["address", "x"], [x.data_ptr(), x]) == {}
    del part
