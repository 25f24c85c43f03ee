"""Devices: where launches go."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def increment_kernel(x_ptr):
    at = x_ptr + tl.program_id(0)
    tl.store(at, tl.load(at) + 1)


class Failing:
    """A device that refuses."""

    def launch(self, launch):
        raise mini_triton.KernelError(f"no {launch.kernel} today")


def test_launches_go_to_the_device_that_is_set_and_back():
    x = torch.zeros(3)
    failing = Failing()
    previous = mini_triton.set_device(failing)
    try:
        assert mini_triton.current_device() is failing
        with pytest.raises(mini_triton.KernelError, match="no increment_kernel today"):
            increment_kernel[(3,)](x)
        assert x.tolist() == [0, 0, 0]
    finally:
        assert mini_triton.set_device(previous) is failing
    increment_kernel[(3,)](x)
    assert x.tolist() == [1, 1, 1]


def test_the_local_device_is_the_one_at_first():
    assert isinstance(mini_triton.current_device(), mini_triton.LocalDevice)


@triton.jit
def outer_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, tl.sum(x[:, None] * x[None, :], axis=1))


def test_the_largest_tile_and_the_programs_are_recorded():
    x = torch.ones(64)
    with mini_triton.profile() as p:
        outer_kernel[(3, 2)](x, torch.empty(64), N=64)
    (record,) = p.launches
    assert record.largest_tile == 64 * 64
    assert record.programs == 6
    assert mini_triton.LaunchRecord.from_dict(record.to_dict()) == record
