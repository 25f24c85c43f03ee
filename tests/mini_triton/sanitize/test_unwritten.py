"""Loads of memory that nobody has written: each wrong kernel has a right twin."""

from __future__ import annotations

from collections.abc import Callable

import mini_triton
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import Finding
from mini_triton.sanitize.fresh import FreshMemory, unwritten


def loads(launch: Callable[[], object]) -> list[Finding]:
    with mini_triton.profile(check="unwritten", on_finding="report") as p:
        launch()
    return p.findings


@triton.jit
def _copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def copy(x: torch.Tensor, y: torch.Tensor, n: int | None = None) -> None:
    n = x.numel() if n is None else n
    _copy[(triton.cdiv(n, 4),)](x, y, n, BLOCK=4)


def test_fresh_memory_may_not_be_loaded() -> None:
    (found,) = loads(lambda: copy(torch.empty(2, 5), torch.empty(2, 5)))
    assert (found.check, found.tensor, found.index) == ("unwritten", "x", (0, 0))
    assert found.programs == ((0, 0, 0),)
    assert "(and 9 more)" in found.message


def test_what_a_kernel_has_stored_may_be_loaded_and_the_rest_not() -> None:
    def stored(n: int) -> None:
        x = torch.empty(2, 5)
        copy(torch.ones(2, 5), x, n)
        copy(x, torch.empty(2, 5))

    (found,) = loads(lambda: stored(7))
    assert found.index == (1, 2)
    assert not loads(lambda: stored(10))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill_(1),
        lambda x: x.copy_(torch.ones(2, 5)),
        lambda x: torch.add(torch.ones(2, 5), 1, out=x),
        lambda x: x.view(-1)[:].zero_(),
        lambda x: x.__setitem__((slice(None), slice(0, 5)), 1.0),
        lambda x: np.copyto(x.numpy(), 1.0),
        lambda x: x.uniform_(),
    ],
)
def test_what_the_host_has_written_may_be_loaded(write: Callable[[torch.Tensor], object]) -> None:
    def run() -> None:
        x = torch.empty(2, 5)
        write(x)
        copy(x, torch.empty(2, 5))

    assert not loads(run)


def test_a_part_that_the_host_has_left_unwritten_is_seen_through_views() -> None:
    def run() -> None:
        x = torch.empty(4, 5)
        x[:, :3] = 1
        copy(x.view(-1)[10:], torch.empty(10))

    (found,) = loads(run)
    assert found.index == (3,)


def test_a_number_that_happens_to_be_nan_is_written() -> None:
    def run() -> None:
        x = torch.empty(4)
        x.fill_(float("nan"))
        copy(x, torch.empty(4))

    assert not loads(run)


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.randn, torch.rand])
def test_other_memory_is_written(make: Callable[[int], torch.Tensor]) -> None:
    assert not loads(lambda: copy(make(6), torch.empty(6)))


def test_memory_from_before_the_region_counts_as_written() -> None:
    x = torch.empty(6)
    assert not loads(lambda: copy(x, torch.empty(6)))


@triton.jit
def _add_one(x, EXCHANGE: tl.constexpr):
    if EXCHANGE:
        tl.atomic_xchg(x, 1)
    else:
        tl.atomic_add(x, 1)


def test_an_update_reads_and_an_exchange_does_not() -> None:
    (found,) = loads(lambda: _add_one[(1,)](torch.empty(1, dtype=torch.int32), EXCHANGE=False))
    assert found.places[0].verb == "atomic"
    assert not loads(lambda: _add_one[(1,)](torch.empty(1, dtype=torch.int32), EXCHANGE=True))


def test_memory_that_is_given_back_and_taken_again_is_fresh_again() -> None:
    with FreshMemory():
        for _ in range(300):  # more than are kept before those that are gone are looked for
            x = torch.empty(16)
            assert unwritten([x])[0].all()
            x.zero_()
            assert not unwritten([x])
    assert not unwritten([torch.empty(16)])


def test_a_host_counter_does_not_see_how_fresh_memory_is_marked() -> None:
    with mini_triton.profile(check="unwritten") as p:
        torch.empty(100)
        with mini_triton.profile():
            torch.empty(100)
    assert p.host == []
