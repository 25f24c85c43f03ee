"""Races are found, and what orders programs is seen: each wrong kernel has a right twin."""

from __future__ import annotations

from collections.abc import Callable

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import Finding
from mini_triton.sanitize import clocks

from tests.mini_triton.sanitize.reading import lines_of


def races(launch: Callable[[], object]) -> list[Finding]:
    with mini_triton.profile(check="races", on_finding="report") as p:
        launch()
    assert all(finding.check == "races" for finding in p.findings)
    return p.findings


@triton.jit
def _add_to_row(x, total, N, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * N + cols, mask=cols < N, other=0.0)
    if ATOMIC:
        tl.atomic_add(total + cols, value, mask=cols < N)
    else:
        before = tl.load(total + cols, mask=cols < N, other=0.0)
        tl.store(total + cols, before + value, mask=cols < N)


def test_a_sum_by_load_and_store_is_a_race_and_by_atomics_is_none() -> None:
    x = torch.ones(3, 5)
    (found,) = races(lambda: _add_to_row[(3,)](x, torch.zeros(1, 5), 5, BLOCK=8, ATOMIC=False))
    assert (found.tensor, found.index, found.kernel) == ("total", (0, 0), "_add_to_row")
    assert found.programs == ((0, 0, 0), (2, 0, 0))
    assert lines_of(found) == [
        "tl.store(total + cols, before + value, mask=cols < N)",
        "before = tl.load(total + cols, mask=cols < N, other=0.0)",
    ]
    assert "(and 4 more)" in found.message
    assert "tl.atomic_add" in found.hint
    assert not races(lambda: _add_to_row[(3,)](x, torch.zeros(1, 5), 5, BLOCK=8, ATOMIC=True))


def test_one_program_alone_races_with_nobody() -> None:
    x = torch.ones(1, 5)
    assert not races(lambda: _add_to_row[(1,)](x, torch.zeros(5), 5, BLOCK=8, ATOMIC=False))


@triton.jit
def _stored_by_all(x, y, EQUAL: tl.constexpr):
    program = tl.program_id(0)
    tl.store(x + program, program)
    tl.store(y, 7 if EQUAL else program)


@triton.jit
def _stored_twice_by_itself(y):
    tl.store(y + tl.program_id(0), 1)
    tl.store(y + tl.program_id(0), 2)


def test_stores_of_different_values_race_and_of_equal_ones_do_not() -> None:
    x, y = torch.zeros(4, dtype=torch.int32), torch.zeros((), dtype=torch.int32)
    (found,) = races(lambda: _stored_by_all[(4,)](x, y, EQUAL=False))
    assert (found.tensor, found.index) == ("y", ())
    assert len(found.places) == 1
    assert not races(lambda: _stored_by_all[(4,)](x, y, EQUAL=True))
    assert not races(lambda: _stored_twice_by_itself[(4,)](x))


@triton.jit
def _neighbour(x, y, n, INTO_X: tl.constexpr):
    program = tl.program_id(0)
    value = tl.load(x + (program + 1) % n)
    if INTO_X:
        tl.store(x + program, value)
    else:
        tl.store(y + program, value)


def test_what_another_program_overwrites_may_not_be_loaded() -> None:
    x, y = torch.arange(4.0), torch.zeros(4)
    (found,) = races(lambda: _neighbour[(4,)](x, y, 4, INTO_X=True))
    assert found.tensor == "x"
    assert not races(lambda: _neighbour[(4,)](x, y, 4, INTO_X=False))


def test_views_of_the_same_memory_are_seen_as_such() -> None:
    x = torch.arange(8.0)
    (found,) = races(lambda: _neighbour[(4,)](x[:4], x[2:6], 4, INTO_X=False))
    assert found.tensor == "y"
    assert not races(lambda: _neighbour[(4,)](x[:4], x[4:], 4, INTO_X=False))


@triton.jit
def _halves(x):
    program = tl.program_id(0)
    if program == 0:
        tl.store(x.to(tl.pointer_type(tl.int16), bitcast=True) + 3, 1)
    else:
        tl.store(x + program, 5)


def test_an_element_of_another_dtype_is_part_of_the_same_memory() -> None:
    (found,) = races(lambda: _halves[(2,)](torch.zeros(4, dtype=torch.int32)))
    assert (found.tensor, found.index) == ("x", (1,))
    assert not races(lambda: _halves[(1,)](torch.zeros(4, dtype=torch.int32)))


@triton.jit
def _atomic_and_plain(x, y, PLAIN: tl.constexpr):
    tl.atomic_add(x, 1)
    if PLAIN:
        tl.store(y + tl.program_id(0), tl.load(x))
    else:
        tl.store(y + tl.program_id(0), tl.atomic_add(x, 0))


def test_a_plain_load_races_with_atomics_of_others() -> None:
    x, y = torch.zeros(1, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    (found,) = races(lambda: _atomic_and_plain[(3,)](x, y, PLAIN=True))
    assert (found.tensor, found.index) == ("x", (0,))
    assert not races(lambda: _atomic_and_plain[(3,)](x, y, PLAIN=False))


@triton.jit
def _within_a_program(x, DOUBLE: tl.constexpr):
    lanes = tl.arange(0, 8)
    tl.store(x + (lanes // 2 if DOUBLE else lanes), lanes)


def test_lanes_of_one_store_may_not_write_different_values_to_an_element() -> None:
    (found,) = races(lambda: _within_a_program[(1,)](torch.zeros(8), DOUBLE=True))
    assert found.programs == ((0, 0, 0),)
    assert "two lanes of one store" in found.message
    assert not races(lambda: _within_a_program[(1,)](torch.zeros(8), DOUBLE=False))


# ------------------------------------------------------------------------------- order by atomics
@triton.jit
def _locked(
    total, locks, HOW: tl.constexpr, TAKEN: tl.constexpr = "acq_rel", LEFT: tl.constexpr = "acq_rel"
):
    lock = locks + (tl.program_id(0) if HOW == "own lock" else 0)
    if HOW != "no lock":
        while tl.atomic_cas(lock, 0, 1, sem=TAKEN) == 1:
            pass
    before = tl.load(total)
    if HOW == "released early":
        tl.atomic_xchg(lock, 0, sem=LEFT)
    tl.store(total, before + 1)
    if HOW == "right" or HOW == "own lock":
        tl.atomic_xchg(lock, 0, sem=LEFT)


def _under_lock(**how: str) -> list[Finding]:
    total, locks = torch.zeros(1), torch.zeros(4, dtype=torch.int32)
    return races(lambda: _locked[(4,)](total, locks, **how))


def test_a_lock_orders_what_is_done_under_it() -> None:
    assert not _under_lock(HOW="right")
    assert not _under_lock(HOW="right", TAKEN="acquire", LEFT="release")


@pytest.mark.parametrize("how", ["no lock", "released early", "own lock"])
def test_a_lock_that_is_not_held_by_all_to_the_end_orders_nothing(how: str) -> None:
    (found,) = _under_lock(HOW=how)
    assert (found.tensor, found.index) == ("total", (0,))


@pytest.mark.parametrize(("taken", "left"), [("relaxed", "acq_rel"), ("acq_rel", "relaxed")])
def test_relaxed_atomics_order_nothing(taken: str, left: str) -> None:
    assert len(_under_lock(HOW="right", TAKEN=taken, LEFT=left)) == 1


@triton.jit
def _last_one_adds_up(x, parts, counter, out, n, COUNTED: tl.constexpr):
    program = tl.program_id(0)
    tl.store(parts + program, tl.load(x + program) * 2)
    last = tl.atomic_add(counter, 1) == n - 1 if COUNTED else program == n - 1
    if last:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, 4))))


@pytest.mark.parametrize("most", [clocks._MOST_PROGRAMS, 1])
def test_the_last_program_may_read_what_the_others_have_counted_off(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "_MOST_PROGRAMS", most)  # beyond them, order is only guessed
    x, parts, out = torch.ones(4), torch.zeros(4), torch.zeros(1)

    def run(counted: bool) -> None:
        counter = torch.zeros(1, dtype=torch.int32)
        _last_one_adds_up[(4,)](x, parts, counter, out, 4, COUNTED=counted)

    assert not races(lambda: run(True))
    assert out.item() == 8
    (found,) = races(lambda: run(False))
    assert found.tensor == "parts"


@triton.jit
def _only_within_a_block(x):
    tl.atomic_add(x, 1, scope="cta")


def test_atomics_of_a_block_are_none_among_programs() -> None:
    x = torch.zeros(1, dtype=torch.int32)
    (found,) = races(lambda: _only_within_a_block[(2,)](x))
    assert 'scope="gpu"' in found.hint
    assert not races(lambda: _only_within_a_block[(1,)](x))


@triton.jit
def _handed_on(x, flag, ACQUIRES: tl.constexpr):
    program = tl.program_id(0)
    if program > 0:
        if ACQUIRES:
            while tl.atomic_add(flag + program - 1, 0) == 0:
                pass
        else:
            while tl.load(flag + program - 1, volatile=True) == 0:
                pass
        tl.store(x + program, tl.load(x + program - 1) + 1)
    tl.atomic_xchg(flag + program, 1)


def test_who_waits_by_a_volatile_load_is_told_what_acquires() -> None:
    def run(acquires: bool) -> None:
        _handed_on[(3,)](torch.zeros(3), torch.zeros(3, dtype=torch.int32), acquires)

    (found,) = races(lambda: run(False))
    assert found.tensor == "x"
    assert "wait with tl.atomic_add(flag, 0) or tl.atomic_cas, which acquires" in found.hint
    assert "a volatile load does not" in found.hint
    assert not races(lambda: run(True))
