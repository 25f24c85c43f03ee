"""Launches as messages: what they hold, and records that go through JSON."""

import json
import math

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.launch import Launch, LaunchRecord, Traffic

from tests.mini_triton.comparing import normal


class Recorder:
    """A device that keeps launches instead of executing them."""

    def __init__(self):
        self.launches = []

    def launch(self, launch):
        self.launches.append(launch)
        return LaunchRecord(launch.kernel, launch.grid)


@pytest.fixture
def recorder():
    device = Recorder()
    previous = mini_triton.set_device(device)
    yield device
    assert mini_triton.set_device(previous) is device


@triton.jit
def kernel(x_ptr, bias_ptr, n, scale, flag, y_ptr, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0) * scale
    if HAS_BIAS:
        x += tl.load(bias_ptr + i, mask=i < n)
    if flag:
        x = -x
    tl.store(y_ptr + i, x, mask=i < n)


def test_a_launch_holds_all_but_the_constants(recorder):
    """`None`, 1 and constexpr arguments are constants of the compiled program."""
    x, y = normal(20), torch.zeros(20)
    kernel[(3, 2)](x, None, 20, 0.5, True, y, BLOCK=8, HAS_BIAS=False)
    kernel[(1,)](x, x, 1, 0.5, False, y, BLOCK=8, HAS_BIAS=True)
    first, second = recorder.launches
    assert (first.kernel, first.grid) == ("kernel", (3, 2, 1))
    assert first.arg_names == ["x_ptr", "n", "scale", "flag", "y_ptr"]
    assert first.args[1:4] == [20, 0.5, True]
    assert first.args[0] is x
    assert first.args[4] is y
    assert "tt.func public @kernel" in first.ttir
    assert second.arg_names == ["x_ptr", "bias_ptr", "scale", "flag", "y_ptr"]
    assert not y.any()


def test_a_launch_can_be_executed_elsewhere_on_other_tensors(recorder):
    x, y = normal(20), torch.zeros(20)
    kernel[(3,)](x, None, 20, 0.5, True, y, BLOCK=8, HAS_BIAS=False)
    (launch,) = recorder.launches
    copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in launch.args]
    again = Launch(launch.kernel, launch.ttir, launch.grid, copies, launch.arg_names)
    record = mini_triton.LocalDevice().launch(again)
    assert torch.equal(copies[4], x * -0.5)
    assert not y.any()
    assert (record.loaded, record.stored, record.stored_bytes) == (20, 20, 80)


def test_what_another_device_answers_is_what_a_profile_sees(recorder):
    with mini_triton.profile() as p:
        kernel[(3,)](normal(20), None, 20, 0.5, True, normal(20), BLOCK=8, HAS_BIAS=False)
    (launch,) = p.launches
    assert (launch.kernel, launch.tensors) == ("kernel", {})


def test_records_go_through_json():
    record = LaunchRecord("k", (4, 2, 1))
    record.add("x", mini_triton.Location("a.py", 3), "loaded", 2**40, 2)
    record.add("x", mini_triton.Location("a.py", 3), "stored", 7, 2)
    record.add("y", mini_triton.Location("", 0), "loaded", 1, 8)
    again = LaunchRecord.from_dict(json.loads(json.dumps(record.to_dict())))
    assert again == record
    assert again.tensors["x"] == Traffic(2**40, 7, 2**41, 14)
    assert (again.loaded, again.loaded_bytes) == (2**40 + 1, 2**41 + 8)
    assert again.lines[("", 0)] == Traffic(1, 0, 8, 0)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([torch.zeros(4)], "takes 5 arguments that are not constants, 1 were given"),
        ([3.0, 4, 0.5, True, torch.zeros(4)], "argument x_ptr is float, not a tensor"),
        ([torch.zeros(4), "4", 0.5, True, torch.zeros(4)], "argument n is str, not a number"),
        ([torch.zeros(4), None, 0.5, True, torch.zeros(4)], "argument n is NoneType"),
        ([torch.zeros(4), math.nan, 0.5, True, torch.zeros(4)], "argument n is no i32"),
        ([torch.zeros(4), 4, 10**400, True, torch.zeros(4)], "argument .* is no f32"),
        ([torch.zeros(4).to_sparse(), 4, 0.5, True, torch.zeros(4)], "tensor x_ptr is .*sparse"),
    ],
)
def test_messages_that_do_not_fit_their_program(recorder, args, message):
    """As a process that forges messages might send them: refused, by name, before anything runs."""
    kernel[(1,)](normal(20), None, 20, 0.5, True, normal(20), BLOCK=8, HAS_BIAS=False)
    (launch,) = recorder.launches
    names = launch.arg_names[: len(args)]
    forged = Launch(launch.kernel, launch.ttir, launch.grid, args, names)
    with pytest.raises(mini_triton.BadLaunch, match=message):
        mini_triton.LocalDevice().launch(forged)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int8, torch.bfloat16])
def test_a_tensor_of_another_dtype_than_the_program_expects(recorder, dtype):
    """The program was compiled for float32; a forged tensor is read as that, within its bytes."""
    kernel[(1,)](normal(8), None, 8, 0.5, True, normal(8), BLOCK=8, HAS_BIAS=False)
    (launch,) = recorder.launches
    x = torch.zeros(8, dtype=dtype)
    args = [x, *launch.args[1:]]
    forged = Launch(launch.kernel, launch.ttir, launch.grid, args, launch.arg_names)
    if dtype.itemsize < 4:
        with pytest.raises(mini_triton.KernelError):
            mini_triton.LocalDevice().launch(forged)
    else:
        mini_triton.LocalDevice().launch(forged)


def test_a_forged_grid():
    ttir = "module {\ntt.func public @k() {\ntt.return\n}\n}\n"
    launch = Launch("k", ttir, (-1, 1, 1), [], [])
    with pytest.raises(mini_triton.BadLaunch, match="-1 programs along x"):
        mini_triton.LocalDevice().launch(launch)
