"""Programs on an SM, against NVIDIA's occupancy calculator."""

import pytest
from mini_triton.hardware.gpu import GPUS
from mini_triton.hardware.occupancy import l1_bytes, occupancy

H100, A100 = GPUS["H100"], GPUS["A100 80GB"]


@pytest.mark.parametrize(
    ("gpu", "warps", "registers", "shared", "programs", "limited_by"),
    [
        (H100, 4, 32, 0, 16, "registers"),
        (H100, 4, 80, 0, 6, "registers"),
        (H100, 8, 64, 32, 4, "registers"),
        (H100, 4, 64, 57_344, 4, "shared memory"),
        (H100, 4, 255, 0, 2, "registers"),
        (H100, 1, 16, 0, 32, "programs"),
        (H100, 32, 32, 0, 2, "registers"),
        (H100, 4, 24, 16, 16, "threads"),
        (H100, 4, 64, 227 * 1024, 1, "shared memory"),
        (H100, 4, 64, 227 * 1024 + 1, 0, "shared memory"),
        (A100, 4, 64, 80 * 1024, 2, "shared memory"),
    ],
)
def test_what_runs_out_first(gpu, warps, registers, shared, programs, limited_by):
    found = occupancy(gpu, warps, registers, shared)
    assert (found.programs, found.limited_by) == (programs, limited_by)
    assert found.warps == programs * warps / 64


def test_l1_has_what_shared_memory_leaves():
    assert l1_bytes(H100, 6, 0) == 256 * 1024
    assert l1_bytes(H100, 6, 16) == (256 - 8) * 1024
    assert l1_bytes(H100, 3, 57_344) == (256 - 196) * 1024
    assert l1_bytes(H100, 1, 227 * 1024) == (256 - 228) * 1024
