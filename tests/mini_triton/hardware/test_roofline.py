"""The slowest side binds."""

import pytest
from mini_triton.hardware.gpu import GPUS, gpu_named
from mini_triton.hardware.roofline import peak, times

H100 = GPUS["H100"]


def test_each_side_takes_its_time():
    found = times(H100, 3_350_000, 55_000, {"bf16": 989_000_000, "fp32": 67_000_000}, {})
    assert found == pytest.approx(
        {"DRAM": 1e-6, "L2": 32 * 55_000 / 5.5e12, "tensor cores": 1e-6, "CUDA cores": 1e-6}
    )


def test_operations_that_are_no_multiply_add_take_twice_as_long():
    assert times(H100, 0, 0, {}, {"fp32": 67_000_000})["CUDA cores"] == pytest.approx(2e-6)


def test_a_precision_that_a_chip_lacks_runs_in_a_wider_one():
    assert peak(H100, "fp16") == peak(H100, "bf16") == 989e12
    assert peak(GPUS["A100 80GB"], "fp8") == 312e12
    assert peak(GPUS["B200"], "fp4") == 9e15


def test_gpus_have_names():
    assert gpu_named("sm_90") is GPUS["H100"]
    assert gpu_named("H200") is gpu_named(GPUS["H200"])
    assert gpu_named("H200").chip.mem_bw > gpu_named("sm_90").chip.mem_bw
    with pytest.raises(ValueError, match="hardware='TPU v5e' is no GPU"):
        gpu_named("TPU v5e")
