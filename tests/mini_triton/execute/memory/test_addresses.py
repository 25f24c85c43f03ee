"""Pointers that a kernel loads: into tensors of the launch, and elsewhere."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, normal


@triton.jit
def table_kernel(addresses_ptr, out_ptr, N: tl.constexpr):
    """Addresses read from a tensor of int64: one row of another tensor each."""
    pid, i = tl.program_id(0), tl.arange(0, N)
    row = tl.load(addresses_ptr + pid).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + pid * N + i, tl.load(row + i))


@triton.jit
def table_of_own_kernel(x_ptr, addresses_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), tl.load(x_ptr + tl.arange(0, N)))
    table_kernel(addresses_ptr, out_ptr, N)


def test_addresses_from_memory_lie_in_tensors_of_the_launch():
    x, out = normal(3, 8), torch.zeros(3, 8)
    addresses = torch.tensor([x[row].data_ptr() for row in (2, 0, 1)])
    table_of_own_kernel[(3,)](x, addresses, out, N=8)
    assert_same(out, x[[2, 0, 1]])


@triton.jit
def one_address_kernel(addresses_ptr, out_ptr):
    at = tl.load(addresses_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr, tl.load(at))


def test_an_address_in_no_tensor_of_the_launch():
    with pytest.raises(mini_triton.OutOfBounds, match="lies in no tensor of this launch"):
        one_address_kernel[(1,)](torch.tensor([4096]), torch.zeros(1))
