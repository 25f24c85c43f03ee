"""Kernels take the way that they would take on the GPU whose language the simulator speaks."""

import torch
import triton
import triton.language as tl


@triton.jit
def asking_kernel(y_ptr):
    if tl.target_info.is_cuda():
        tl.store(y_ptr, 1)
    if tl.target_info.cuda_capability_geq(9):
        tl.store(y_ptr + 1, 1)
    if tl.target_info.cuda_capability_geq(10):
        tl.store(y_ptr + 2, 1)
    if tl.target_info.is_hip():
        tl.store(y_ptr + 3, 1)


def test_a_kernel_sees_an_sm_90_of_cuda():
    y = torch.zeros(4, dtype=torch.int32)
    asking_kernel[(1,)](y)
    assert y.tolist() == [1, 1, 0, 0]


def test_the_backend_is_chosen_by_its_own_name():
    assert triton.runtime.driver.active.get_current_target().backend == "mini_triton"
