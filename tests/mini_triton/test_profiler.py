"""Profiles: regions that nest, totals, records as data, running totals."""

import json

import mini_triton
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import line_of, normal


@triton.jit
def twice_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def twice(x):
    y = torch.empty_like(x)
    twice_kernel[(triton.cdiv(x.numel(), 8),)](x, y, x.numel(), BLOCK=8)
    return y


def test_launches_and_host_operations_are_told_apart():
    x = normal(20)
    with mini_triton.profile() as p:
        twice(twice(x)) + x
    assert [(launch.kernel, launch.grid) for launch in p.launches] == [
        ("twice_kernel", (3, 1, 1))
    ] * 2
    assert (p.loaded, p.stored, p.loaded_bytes, p.stored_bytes) == (40, 40, 160, 160)
    assert [op.name for op in p.host] == ["add"]
    place = line_of(twice_kernel, "tl.store")
    assert {f"{file}:{line}": vars(t) for (file, line), t in p.lines.items()} == {
        place: {"loaded": 40, "stored": 40, "loaded_bytes": 160, "stored_bytes": 160}
    }


def test_regions_nest_and_end():
    """An inner region that ends, empty as the outer one, takes nothing from it."""
    x = normal(8)
    with mini_triton.profile() as outer:
        with mini_triton.profile() as empty:
            pass
        twice(x)
        with mini_triton.profile() as inner:
            twice(x) + x
    twice(x) + x
    assert (len(empty.launches), len(inner.launches), len(outer.launches)) == (0, 1, 2)
    assert (len(empty.host), len(inner.host), len(outer.host)) == (0, 1, 1)


def test_a_region_that_raises_ends():
    x = normal(8)

    def failing(p):
        with p:
            twice(x)
            raise ZeroDivisionError

    region = mini_triton.profile()
    with pytest.raises(ZeroDivisionError):
        failing(region)
    with mini_triton.profile() as p:
        twice(x)
    assert len(p.launches) == 1


def test_profiles_and_records_are_plain_data():
    x = normal(20)
    with mini_triton.profile() as p:
        twice(x).sum()
    data = json.loads(p.to_json())
    assert data == p.to_dict()
    assert data["kernels"] == {"loaded": 20, "stored": 20, "loaded_bytes": 80, "stored_bytes": 80}
    assert data["host"][0]["name"] == "sum"
    (launch,) = p.launches
    assert mini_triton.LaunchRecord.from_dict(data["launches"][0]) == launch


def test_records_of_several_launches_are_not_mixed_up():
    with mini_triton.profile() as p:
        twice(normal(8))
        before = p.total
        twice(normal(16))
        p.lines.clear()
    assert (before.loaded, p.total.loaded) == (8, 24)
    assert [launch.loaded for launch in p.launches] == [8, 16]


def test_running_totals():
    twice(normal(8))
    mini_triton.reset_stats()
    assert mini_triton.get_stats() == dict.fromkeys(
        ("loaded", "stored", "loaded_bytes", "stored_bytes"), 0
    )
    twice(normal(20))
    stats = mini_triton.get_stats()
    twice(normal(20))
    assert (stats["loaded"], stats["stored_bytes"]) == (20, 80)
    assert mini_triton.get_stats()["loaded"] == 40


def test_a_launch_that_fails_is_not_recorded():
    mini_triton.reset_stats()
    with mini_triton.profile() as p, pytest.raises(mini_triton.OutOfBounds):
        twice_kernel[(3,)](normal(8), normal(24), 24, BLOCK=8)
    assert p.launches == []
    assert mini_triton.get_stats()["loaded"] == 0
