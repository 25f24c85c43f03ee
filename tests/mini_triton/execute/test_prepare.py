"""What is known of a program before it runs: unsupported operations, arguments stored to."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.prepare import prepare

from tests.mini_triton.comparing import normal, shown_place


class Recorder:
    """Keeps launches instead of executing them."""

    def __init__(self):
        self.launches = []

    def launch(self, launch):
        self.launches.append(launch)
        return mini_triton.LaunchRecord(launch.kernel, launch.grid)


def prepared(kernel, *args, **constants):
    """The prepared program of a launch that is not executed."""
    recorder = Recorder()
    previous = mini_triton.set_device(recorder)
    try:
        kernel[(1,)](*args, **constants)
    finally:
        mini_triton.set_device(previous)
    (launch,) = recorder.launches
    return prepare(launch.ttir, launch.kernel)


@triton.jit
def unsupported_kernel(x_ptr, out_ptr, n):
    tl.store(out_ptr, 1.0)
    x = tl.load(x_ptr + tl.arange(0, 8))
    if n < 0:
        swap: tl.constexpr = "brev.b32 $0, $1;"
        bits = tl.inline_asm_elementwise(swap, "=r,r", [x.to(tl.int32)], tl.int32, True, 1)
        tl.store(out_ptr + tl.arange(0, 8), bits)


def test_an_unsupported_operation_is_named_before_anything_runs():
    """Even where no program would reach it."""
    out = torch.zeros(8)
    with pytest.raises(mini_triton.UnsupportedOp) as caught:
        unsupported_kernel[(1,)](normal(8), out, 3)
    message = str(caught.value)
    assert message.startswith("not supported: tl.inline_asm_elementwise: PTX")
    assert shown_place(unsupported_kernel, "elementwise(swap") in message
    assert isinstance(caught.value, mini_triton.KernelError)
    assert not out.any()


@triton.jit
def stores_kernel(a_ptr, b_ptr, c_ptr, d_ptr, e_ptr, f_ptr, n):
    tl.store(b_ptr, tl.load(a_ptr))
    for _ in range(n):
        c_ptr += 1
    tl.store(c_ptr, 1.0)
    at = d_ptr
    if n > 2:
        at = e_ptr
    tl.atomic_add(at, tl.load(f_ptr))


def test_arguments_that_a_kernel_may_store_to():
    """Through arithmetic, loops and branches; a and f are only read."""
    args = [torch.zeros(8) for _ in range(6)]
    assert prepared(stores_kernel, *args, 3).stored_to == {1, 2, 3, 4}


@triton.jit
def by_address_kernel(a_ptr, out_ptr):
    tl.store(tl.load(a_ptr).to(tl.pointer_type(tl.float32)), 1.0)
    tl.store(out_ptr, 1.0)


def test_any_argument_may_be_stored_to_by_address():
    assert (
        prepared(by_address_kernel, torch.zeros(1, dtype=torch.int64), normal(1)).stored_to is None
    )


@triton.jit
def lock_kernel(lock_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def flag_kernel(flag_ptr):
    pid = tl.program_id(0)
    if pid > 0:
        while tl.load(flag_ptr + pid - 1, volatile=True) == 0:
            pass
    tl.atomic_xchg(flag_ptr + pid, 1)


def test_only_kernels_that_wait_run_one_program_at_a_time():
    assert prepared(lock_kernel, torch.zeros(1, dtype=torch.int32)).one_at_a_time
    assert prepared(flag_kernel, torch.zeros(4, dtype=torch.int32)).one_at_a_time
    args = [torch.zeros(8) for _ in range(6)]
    assert not prepared(stores_kernel, *args, 3).one_at_a_time


def test_a_program_is_prepared_once():
    args = [torch.zeros(8) for _ in range(6)]
    assert prepared(stores_kernel, *args, 3) is prepared(stores_kernel, *args, 4)


def test_text_that_is_no_program():
    with pytest.raises(mini_triton.BadProgram, match="TTIR line 2"):
        prepare("module {\n  nonsense\n}\n", "k")
