"""Atomic operations: results, old values in grid order, locks, and what they count."""

import mini_triton
import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, from_triton, integers, normal, run


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=i < n)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.float64], ids=str)
def test_a_histogram(dtype):
    """Lanes and programs that hit the same element all count."""
    x = integers(100, low=0, high=7)
    out = torch.zeros(7, dtype=dtype)
    run(histogram_kernel, x, out, 100, grid=(7,), BLOCK=16)
    assert_same(out, torch.bincount(x, minlength=7).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_16_bit_floats_round_at_each_addition(dtype):
    """300 ones: bfloat16 stays at 256, which is its nearest even."""
    out = torch.zeros(1, dtype=dtype)
    run(histogram_kernel, torch.zeros(300, dtype=torch.int32), out, 300, grid=(19,), BLOCK=16)
    assert out.item() == (256.0 if dtype == torch.bfloat16 else 300.0)


@triton.jit
def updates_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """out (7, 4): element i % 4 of each row gets every x of its lanes."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    to = out_ptr + i % 4
    tl.atomic_add(to, x)
    tl.atomic_max(to + 4, x)
    tl.atomic_min(to + 8, x)
    tl.atomic_and(to + 12, x)
    tl.atomic_or(to + 16, x)
    tl.atomic_xor(to + 20, x)
    tl.atomic_xchg(to + 24, x)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint32, torch.int64, torch.uint64], ids=str)
def test_every_update_of_integers(dtype):
    wide = integers(32, low=-(2**31), high=2**31, dtype=torch.int64)
    x = wide.view(torch.uint64) if dtype == torch.uint64 else wide.to(dtype)
    start = torch.tensor([5, 0, 1, 2**31 - 1], dtype=torch.int64).to(dtype)
    out = torch.stack([start] * 7)
    updates_kernel[(4,)](x, out, N=8)
    values = x.numpy().reshape(8, 4)
    first = start.numpy()[None]
    every = np.concatenate([first, values])
    with np.errstate(over="ignore"):
        expected = [
            np.add.reduce(every, dtype=every.dtype), np.maximum.reduce(every),
            np.minimum.reduce(every), np.bitwise_and.reduce(every), np.bitwise_or.reduce(every),
            np.bitwise_xor.reduce(every), every[-1],
        ]  # fmt: skip
    assert_same(out, np.stack(expected))


@triton.jit
def float_extremes_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.atomic_max(out_ptr + i % 2, x)
    tl.atomic_min(out_ptr + 2 + i % 2, x)


def test_extremes_of_floats_of_both_signs():
    """Triton makes these from integer updates of the bits."""
    x = normal(32)
    out = torch.tensor([-torch.inf, 0.0, torch.inf, 0.0])
    run(float_extremes_kernel, x, out, grid=(4,), N=8)
    even, odd = x[::2], x[1::2]
    zero = torch.tensor(0.0)
    right = [even.max(), torch.maximum(odd.max(), zero), even.min(), torch.minimum(odd.min(), zero)]
    assert_same(out, torch.stack(right))


@triton.jit
def tickets_kernel(counter_ptr, out_ptr, N: tl.constexpr):
    """Old values: each lane takes a number; some lanes and some programs take none."""
    pid, i = tl.program_id(0), tl.arange(0, N)
    ticket = tl.atomic_add(counter_ptr + i * 0, 1, mask=i % 3 != 0)
    tl.store(out_ptr + pid * N + i, ticket, mask=i % 3 != 0)
    if pid % 2 == 1:
        tl.store(out_ptr + pid * N, tl.atomic_add(counter_ptr + 1, 10))


def test_old_values_come_in_grid_order():
    counter, out = torch.zeros(2, dtype=torch.int32), torch.full((4, 8), -1, dtype=torch.int32)
    tickets_kernel[(4,)](counter, out, N=8)
    assert counter.tolist() == [20, 20]
    taking = torch.arange(8) % 3 != 0
    assert out[:, taking].flatten().tolist() == list(range(20))
    assert out[:, 0].tolist() == [-1, 0, -1, 10]


@triton.jit
def claim_kernel(owner_ptr, won_ptr, N: tl.constexpr):
    """Compare and swap: of all lanes on an element the first one finds it free."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    before = tl.atomic_cas(owner_ptr + i % 6, tl.full((N,), -1, tl.int32), i)
    tl.store(won_ptr + i, before == -1)


def test_compare_and_swap():
    owner = torch.full((6,), -1, dtype=torch.int32)
    owner[2] = 77
    won = torch.zeros(32, dtype=torch.int8)
    claim_kernel[(4,)](owner, won, N=8)
    assert owner.tolist() == [0, 1, 77, 3, 4, 5]
    assert won.nonzero()[:, 0].tolist() == [0, 1, 3, 4, 5]


@triton.jit
def lock_kernel(lock_ptr, value_ptr, log_ptr):
    """A spin lock around an update that is not atomic."""
    pid = tl.program_id(0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    value = tl.load(value_ptr)
    tl.store(value_ptr, value * 2 + pid)
    tl.store(log_ptr + pid, value)
    tl.atomic_xchg(lock_ptr, 0)


def test_a_spin_lock_ends():
    lock, value = torch.zeros(1, dtype=torch.int32), torch.ones(1, dtype=torch.int64)
    log = torch.zeros(6, dtype=torch.int64)
    lock_kernel[(6,)](lock, value, log)
    expected, seen = 1, []
    for pid in range(6):
        seen.append(expected)
        expected = expected * 2 + pid
    assert (value.item(), lock.item(), log.tolist()) == (expected, 0, seen)


@triton.jit
def chosen_kernel(a_ptr, b_ptr, N: tl.constexpr):
    """An update through pointers into two tensors."""
    i = tl.arange(0, N)
    tl.atomic_add(tl.where(i % 2 == 0, a_ptr + i // 4, b_ptr + i // 4), i, mask=i != 7)


def test_pointers_that_are_chosen_at_run_time():
    a, b = torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    with mini_triton.profile() as p:
        chosen_kernel[(3,)](a, b, N=8)
    assert (a.tolist(), b.tolist()) == ([6, 30], [12, 15])
    stored = {name: traffic.stored for name, traffic in p.launches[0].tensors.items()}
    assert stored == {"a_ptr": 12, "b_ptr": 9}


def test_an_update_counts_as_a_store_and_its_old_value_as_a_load():
    x, out = torch.zeros(20, dtype=torch.int32), torch.zeros(1)
    counter, old = torch.zeros(2, dtype=torch.int32), torch.zeros(4, 8, dtype=torch.int32)
    with mini_triton.profile() as p:
        histogram_kernel[(3,)](x, out, 20, BLOCK=8)
        tickets_kernel[(4,)](counter, old, N=8)
    unused, used = (launch.tensors for launch in p.launches)
    assert (unused["out_ptr"].loaded, unused["out_ptr"].stored) == (0, 20)
    assert (used["counter_ptr"].loaded, used["counter_ptr"].stored) == (22, 22)
    assert used["counter_ptr"].loaded_bytes == 88


@triton.jit
def forms_kernel(x_ptr, old_ptr, n, SEM: tl.constexpr, SCOPE: tl.constexpr, N: tl.constexpr):
    """A scalar and a masked tile; the old values of both."""
    i = tl.arange(0, N)
    tl.store(old_ptr + N, tl.atomic_add(x_ptr + N, 2, sem=SEM, scope=SCOPE))
    old = tl.atomic_add(x_ptr + i, i.to(x_ptr.dtype.element_ty), mask=i < n, sem=SEM, scope=SCOPE)
    tl.store(old_ptr + i, old, mask=i < n)


@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_orders_and_scopes_change_nothing(sem, scope):
    x, old = torch.arange(9, dtype=torch.int32), torch.zeros(9, dtype=torch.int32)
    forms_kernel[(1,)](x, old, 5, SEM=sem, SCOPE=scope, N=8)
    assert x.tolist() == [0, 2, 4, 6, 8, 5, 6, 7, 10]
    assert old.tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 8]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_old_values_of_floats(dtype):
    x, old = torch.arange(9).to(dtype), torch.zeros(9, dtype=dtype)
    forms_kernel[(1,)](x, old, 5, SEM="relaxed", SCOPE="gpu", N=8)
    assert x.tolist() == [0, 2, 4, 6, 8, 5, 6, 7, 10]
    assert old.tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 8]


@triton.jit
def swap_kernel(x_ptr, expected_ptr, value_ptr, old_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    expected, value = tl.load(expected_ptr + i), tl.load(value_ptr + i)
    tl.store(old_ptr + i, tl.atomic_cas(x_ptr + i, expected, value))


@pytest.mark.parametrize(
    "dtype", [torch.int16, torch.int32, torch.int64, torch.float16, torch.float32], ids=str
)
def test_tiles_of_compare_and_swap(dtype):
    x = torch.arange(8).to(dtype)
    expected = torch.where(torch.arange(8) % 2 == 0, x, x + 1)
    old = torch.empty_like(x)
    swap_kernel[(1,)](x, expected, -x, old, N=8)
    assert old.tolist() == list(range(8))
    assert x.tolist() == [0, 1, -2, 3, -4, 5, -6, 7]


atomic_access = from_triton((3, 9), "there is no tl.atomic_load, _store or _poll")


@triton.jit
def copy_kernel(x_ptr, out_ptr, n):
    i = tl.arange(0, 8)
    value = tl.atomic_load(x_ptr + i, mask=i < n)
    tl.atomic_store(out_ptr + i, value, mask=i < n, sem="relaxed")
    tl.atomic_store(out_ptr + n, tl.atomic_load(x_ptr, sem="relaxed"))


@atomic_access
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32], ids=str)
def test_atomic_loads_and_stores(dtype):
    """They move what plain ones would, and count as these."""
    x, out = integers(8, low=-9, high=9, dtype=dtype), torch.zeros(8, dtype=dtype)
    with mini_triton.profile(host=False) as p:
        copy_kernel[(1,)](x, out, 5)
    assert_same(out, torch.cat([x[:5], x[:1], torch.zeros(2, dtype=dtype)]))
    assert (p.total.loaded, p.total.stored) == (6, 6)


@atomic_access
def test_an_atomic_load_outside_names_its_mask():
    with pytest.raises(
        mini_triton.OutOfBounds, match=r"(?s)loads element 4 of x_ptr.*the mask lets"
    ):
        copy_kernel[(1,)](torch.zeros(4), torch.zeros(8), 7)


@triton.jit
def hand_over_kernel(flag_ptr, data_ptr, out_ptr, SEM: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data_ptr, 7)
        tl.atomic_store(flag_ptr, 1, sem=SEM)
    else:
        ready = tl.atomic_load(flag_ptr)
        while ready == 0:
            ready = tl.atomic_load(flag_ptr)
        tl.store(out_ptr, tl.load(data_ptr))


@atomic_access
@pytest.mark.parametrize(("sem", "races"), [("release", 0), ("relaxed", 1)])
def test_a_flag_hands_data_over(sem, races):
    flag, data, out = (torch.zeros(1, dtype=torch.int32) for _ in range(3))
    with mini_triton.profile(host=False, check="races", on_finding="report") as p:
        hand_over_kernel[(2,)](flag, data, out, SEM=sem)
    assert out.item() == 7
    assert [finding.tensor for finding in p.findings] == ["data_ptr"] * races


@triton.jit
def wait_kernel(flag_ptr):
    tl.atomic_poll(flag_ptr, 1)


@atomic_access
def test_a_poll_is_refused():
    with pytest.raises(mini_triton.UnsupportedOp, match=r"(?s)tl\.atomic_poll: .*tl\.atomic_load"):
        wait_kernel[(1,)](torch.ones(1, dtype=torch.int32))
