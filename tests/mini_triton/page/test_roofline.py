"""The plot: points on their roofs, all of it inside the frame."""

import pytest
from mini_triton.groups import Group
from mini_triton.hardware import GPUS, HardwareRecord
from mini_triton.hardware.record import Resources
from mini_triton.launch import LaunchRecord
from mini_triton.page.roofline import plot

H100 = GPUS["H100"]


def group(number, flops, dram, time, precision="bf16"):
    resources = Resources(True, "", 4, 3, 32, 0, 0, 16, "threads", 1.0)
    hardware = HardwareRecord("H100", resources, dram_read_bytes=dram)
    hardware.products = {precision: flops} if flops else {}
    hardware.times = {"DRAM": time}
    launch = LaunchRecord(f"k{number}", (1, 1, 1), hardware=hardware)
    return Group(number, launch, 1)


def test_a_launch_that_dram_bounds_lies_on_the_slope():
    found = plot([group(1, 1000, 1000, 1000 / 3.35e12)], H100)
    (slope, _) = found.roofs
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in slope.points.split())
    (point,) = found.points
    assert point.y == pytest.approx(y0 + (point.x - x0) * (y1 - y0) / (x1 - x0), abs=0.5)
    assert slope.label == "DRAM 3.35 TB/s"


def test_all_of_it_is_inside():
    found = plot([group(1, 1, 10**9, 1.0), group(2, 10**15, 10, 1.1)], H100)
    for point in found.points:
        assert found.left <= point.x <= found.right
        assert found.top <= point.y <= found.bottom
    assert found.xs[0].label == "1e-09"


def test_launches_on_one_spot_lie_side_by_side():
    found = plot([group(1, 1000, 1000, 1.0), group(2, 1000, 1000, 1.0)], H100)
    assert abs(found.points[0].x - found.points[1].x) >= 15


def test_what_computes_nothing_has_no_point():
    found = plot([group(1, 0, 1000, 1.0)], H100)
    assert found.points == []
    assert found.without == ["k1 [1]"]


def test_a_roof_for_each_precision():
    found = plot([group(1, 10, 10, 1.0), group(2, 10, 10, 1.0, "fp32")], H100)
    assert [roof.label for roof in found.roofs[1:]] == ["fp32 67 TFLOP/s", "bf16 989 TFLOP/s"]
