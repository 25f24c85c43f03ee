"""Results that depend on the order of programs: each wrong kernel has a right twin."""

from __future__ import annotations

from collections.abc import Callable

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import Finding
from mini_triton.sanitize.order import shuffled


def order(launch: Callable[[], object], *checks: str) -> list[Finding]:
    with mini_triton.profile(check=("order", *checks), on_finding="report") as p:
        launch()
    return [finding for finding in p.findings if finding.check == "order"]


@triton.jit
def _compacted(x, out, counter, BY_TICKET: tl.constexpr):
    ticket = tl.atomic_add(counter, 1)
    at = ticket if BY_TICKET else tl.program_id(0)
    tl.store(out + at, tl.load(x + tl.program_id(0)))


def test_a_place_by_ticket_depends_on_the_order() -> None:
    def run(by_ticket: bool) -> torch.Tensor:
        out = torch.zeros(8)
        _compacted[(8,)](torch.arange(8.0), out, torch.zeros(1, dtype=torch.int32), by_ticket)
        return out

    outs = []
    (found,) = order(lambda: outs.append(run(True)))
    assert found.tensor == "out"
    assert torch.equal(outs[0], torch.arange(8.0))  # as in grid order, whatever was tried since
    assert "0.0, but " in found.message or found.index != (0,)
    assert not order(lambda: run(False))


@triton.jit
def _last_wins(out, n, MODULO: tl.constexpr):
    program = tl.program_id(0)
    tl.store(out + program % MODULO, program)


def test_the_last_store_depends_on_the_order_and_is_not_said_twice() -> None:
    out = torch.zeros(8)
    assert order(lambda: _last_wins[(8,)](out, 8, MODULO=2))[0].tensor == "out"
    assert not order(lambda: _last_wins[(8,)](out, 8, MODULO=2), "races")  # it is a race
    assert not order(lambda: _last_wins[(8,)](out, 8, MODULO=8))


@triton.jit
def _summed(x, total, old, BLOCK: tl.constexpr, KEEP: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    before = tl.atomic_add(total, tl.sum(value))
    if KEEP:
        tl.store(old + tl.program_id(0), before)


def test_sums_may_round_otherwise() -> None:
    make = torch.Generator().manual_seed(1)
    x = torch.randn(50, 64, generator=make) * 10.0 ** torch.randint(-6, 6, (50, 1), generator=make)
    results = []
    for seed in range(2):
        total = torch.zeros(1)
        _summed[(50,)](x if seed else x.flip(0), total, total, BLOCK=64, KEEP=False)
        results.append(total.item())
    assert results[0] != results[1]  # so that the bits of the sum do depend on the order
    assert not order(lambda: _summed[(50,)](x, torch.zeros(1), torch.zeros(50), 64, KEEP=False))
    (found,) = order(lambda: _summed[(50,)](x, torch.zeros(1), torch.zeros(50), 64, KEEP=True))
    assert found.tensor == "old"


@triton.jit
def _in_turn(turn, y):
    program = tl.program_id(0)
    while tl.atomic_cas(turn, program, program) != program:
        pass
    tl.store(y + program, program)
    tl.atomic_xchg(turn, program + 1)


def test_programs_that_wait_for_those_before_them_are_let_be() -> None:
    turn, y = torch.zeros(1, dtype=torch.int32), torch.zeros(4)
    assert not order(lambda: _in_turn[(4,)](turn, y))
    assert turn.item() == 4


@pytest.mark.parametrize("programs", [2, 3, 100])
def test_the_shuffled_order_is_another_one_each_time_the_same(programs: int) -> None:
    found = shuffled(programs)
    assert found.tolist() != list(range(programs))
    assert sorted(found.tolist()) == list(range(programs))
    assert torch.equal(found, shuffled(programs))


def test_values_have_the_digits_of_their_type() -> None:
    def run(dtype: torch.dtype, *values: float) -> None:
        x = torch.tensor(values, dtype=dtype)
        _compacted[(2,)](x, torch.zeros_like(x), torch.zeros(1, dtype=torch.int32), True)

    (narrow,) = order(lambda: run(torch.float32, 0.1, 0.2))
    assert "is 0.1, but 0.2 if" in narrow.message
    (wide,) = order(lambda: run(torch.float64, 0.1, 0.2))
    assert "is 0.1, but 0.2 if" in wide.message
    (whole,) = order(lambda: run(torch.int32, 1, 2))
    assert " is 1, but 2 if" in whole.message
