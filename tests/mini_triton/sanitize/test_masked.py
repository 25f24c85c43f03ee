"""Lanes that a load leaves undefined may not matter: each wrong kernel has a right twin."""

from __future__ import annotations

from collections.abc import Callable

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import Finding

from tests.mini_triton.sanitize.reading import lines_of


def masked(launch: Callable[[], object]) -> list[Finding]:
    with mini_triton.profile(check="masked", on_finding="report") as p:
        launch()
    return p.findings


@triton.jit
def _reduced(x, y, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    if HOW == "other":
        row = tl.load(x + tl.program_id(0) * n + cols, mask=cols < n, other=0)
    else:
        row = tl.load(x + tl.program_id(0) * n + cols, mask=cols < n)
    if HOW == "where":
        row = tl.where(cols < n, row, 0)
    if HOW == "max":
        result = tl.max(row)
    elif HOW == "min":
        result = tl.min(row)
    else:
        result = tl.sum(row)
    tl.store(y + tl.program_id(0), result)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.int8])
@pytest.mark.parametrize("how", ["sum", "max", "min"])
def test_a_reduction_over_undefined_lanes_is_found(dtype: torch.dtype, how: str) -> None:
    x, y = torch.ones(2, 5).to(dtype), torch.zeros(2).to(dtype)
    (found,) = masked(lambda: _reduced[(2,)](x, y, 5, BLOCK=8, HOW=how))
    assert (found.tensor, found.index, found.programs) == ("y", (0,), ((0, 0, 0),))
    load, store = lines_of(found)
    assert load == "row = tl.load(x + tl.program_id(0) * n + cols, mask=cols < n)"
    assert store == "tl.store(y + tl.program_id(0), result)"
    assert y.tolist() in ([5, 5], [1, 1], [0, 0])  # as the first run has left it


@pytest.mark.parametrize("how", ["other", "where"])
def test_lanes_with_a_value_or_discarded_are_right(how: str) -> None:
    assert not masked(lambda: _reduced[(2,)](torch.ones(2, 5), torch.zeros(2), 5, 8, HOW=how))


def test_a_mask_that_lets_all_lanes_through_leaves_none_undefined() -> None:
    assert not masked(lambda: _reduced[(2,)](torch.ones(2, 8), torch.zeros(2), 8, 8, HOW="sum"))


@triton.jit
def _copied(x, y, n, BLOCK: tl.constexpr, ALL: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.load(x + cols, mask=cols < n)
    tl.store(y + cols, row, mask=(cols < BLOCK) if ALL else (cols < n))


def test_undefined_lanes_may_not_be_stored() -> None:
    (found,) = masked(lambda: _copied[(1,)](torch.ones(5), torch.ones(8), 5, BLOCK=8, ALL=True))
    assert found.index == (5,)
    assert "(and 2 more)" in found.message
    assert not masked(lambda: _copied[(1,)](torch.ones(5), torch.ones(8), 5, BLOCK=8, ALL=False))


@triton.jit
def _gathered(index, x, y, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    at = tl.load(index + cols, mask=cols < n)
    value = tl.load(x + at, mask=cols < n, other=0) if MASKED else tl.load(x + at)
    tl.store(y + cols, value, mask=cols < n)


def test_undefined_lanes_may_not_decide_an_address() -> None:
    index = torch.arange(5)
    (found,) = masked(lambda: _gathered[(1,)](index, torch.ones(5), torch.ones(5), 5, 8, False))
    assert "leads to" in found.message
    assert "elements 0 to 4" in found.message
    assert not masked(lambda: _gathered[(1,)](index, torch.ones(5), torch.ones(5), 5, 8, True))


@triton.jit
def _trips(count, y, there):
    for _ in range(tl.load(count, mask=there)):
        tl.store(y, tl.load(y))


def test_undefined_lanes_may_not_decide_how_often_a_loop_runs() -> None:
    count, y = torch.ones(1, dtype=torch.int32), torch.ones(1)
    (found,) = masked(lambda: _trips[(1,)](count, y, False))
    assert "how often a loop runs" in found.message
    assert not masked(lambda: _trips[(1,)](count, y, True))


@triton.jit
def _old_values(x, y, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    old = tl.atomic_add(x + cols, 1, mask=cols < 5)
    tl.store(y + cols, old, mask=(cols < 5) if MASKED else (cols < BLOCK))


def test_the_old_value_of_an_update_that_is_masked_off_is_undefined() -> None:
    x, y = torch.zeros(8, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    (found,) = masked(lambda: _old_values[(1,)](x, y, 8, MASKED=False))
    assert (found.tensor, found.index) == ("y", (5,))
    assert x.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]  # updated once, however often it ran
    assert not masked(lambda: _old_values[(1,)](x, y, 8, MASKED=True))


@triton.jit
def _two_loads(a, b, y, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    first = tl.load(a + cols, mask=cols < n)
    second = tl.load(b + cols, mask=cols < n)
    tl.store(y, tl.sum(tl.where(cols < n, first, 0)) + tl.sum(second))


def test_the_load_that_matters_is_named() -> None:
    (found,) = masked(lambda: _two_loads[(1,)](torch.ones(5), torch.ones(5), torch.ones(1), 5, 8))
    assert lines_of(found)[0].startswith("second =")
