"""Loops whose indices advance evenly: the results are those of running every operation."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute import induction
from mini_triton.execute.tiles.affine import Affine
from mini_triton.execute.tiles.values import Buffer, Pointer

from tests.mini_triton.comparing import assert_same, integers, normal
from tests.mini_triton.execute.test_machine import ChunkedDevice

TRIPS = 6


def index(base, steps=(), sizes=(), dtype=torch.int32):
    low, high = (base, base) if isinstance(base, int) else (int(base.min()), int(base.max()))
    return Affine(dtype, base, low, high, steps, sizes)


def test_what_moves_by_one_number_is_even():
    first = index(torch.tensor([3, 50]), (2,), (4,))
    even = induction._evenly(first, first.moved(15), TRIPS)
    assert even.step == 3
    assert_same(even.at(4).dense, first.dense + 12)
    assert even.at(4).base_bounds == (15, 62)


@pytest.mark.parametrize(
    "last",
    [
        index(torch.tensor([18, 66]), (2,), (4,)),  # by different numbers
        index(torch.tensor([18, 65]), (3,), (4,)),  # other steps
        index(torch.tensor([7, 54]), (2,), (4,)),  # by no whole number a trip
        index(torch.tensor([18, 65]), (2,), (4,), torch.int64),
    ],
)
def test_what_is_not_even(last):
    assert induction._evenly(index(torch.tensor([3, 50]), (2,), (4,)), last, TRIPS) is None


def test_an_index_that_would_leave_its_dtype_is_not_even():
    first = index(2**31 - 30)
    assert induction._evenly(first, first.moved(25), TRIPS).step == 5
    assert induction._evenly(first, first.moved(30), TRIPS) is None


def test_pointers_are_even_in_one_buffer():
    flat = torch.arange(100)
    x, y = (Buffer(name, flat, (100,), (1,)) for name in "xy")
    offset = index(7, (1,), (4,), torch.int64)
    first = Pointer(x, offset, None, torch.float32)
    even = induction._evenly(first, Pointer(x, offset.moved(10), None, torch.float32), TRIPS)
    assert even.step == 2
    assert_same(even.at(3).lanes, first.lanes + 6)
    other = Pointer(y, offset.moved(10), None, torch.float32)
    assert induction._evenly(first, other, TRIPS) is None


@triton.jit
def copies_kernel(x_ptr, out_ptr, trips, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """A pointer that the loop carries, a mask of the counter, an offset of both."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    source = x_ptr + pid * trips * STRIDE + lanes
    for k in range(trips):
        at = pid * trips * BLOCK + k * BLOCK + lanes
        x = tl.load(source, mask=lanes < STRIDE + trips - k, other=-1.0)
        tl.store(out_ptr + at, x)
        source += STRIDE


@triton.jit
def triangular_kernel(x_ptr, out_ptr, trips, BLOCK: tl.constexpr):
    """A pointer that moves further each trip."""
    lanes = tl.arange(0, BLOCK)
    source = x_ptr + lanes
    for k in range(trips):
        tl.store(out_ptr + k * BLOCK + lanes, tl.load(source))
        source += k


@triton.jit
def swapping_kernel(x_ptr, y_ptr, out_ptr, trips, BLOCK: tl.constexpr):
    """Two pointers that change places, and move on."""
    lanes = tl.arange(0, BLOCK)
    a, b = x_ptr + lanes, y_ptr + lanes
    for k in range(trips):
        tl.store(out_ptr + k * BLOCK + lanes, tl.load(a))
        c = a + 1
        a = b
        b = c


@triton.jit
def turning_kernel(out_ptr, trips, BLOCK: tl.constexpr):
    """Comparisons that turn between the first and the last trip, bounds that are met midway."""
    lanes = tl.arange(0, BLOCK)
    for k in range(trips):
        equal = (k == 3).to(tl.int32)
        unequal = (k != 3).to(tl.int32)
        below = (k < 3).to(tl.int32)
        clamped = tl.minimum(k, 2) * 1000 + tl.maximum(k, 3) * 100
        turned = k % 3 + (k // 2) * 10
        packed = equal + unequal * 2 + below * 4 + clamped * 8 + turned * 100_000
        tl.store(out_ptr + k * BLOCK + lanes, packed + (lanes < k).to(tl.int32))


@triton.jit
def wrapping_kernel(out_ptr, trips, start, factor):
    """Integers that wrap in the fourth trip, alone and as a factor."""
    total = start
    for k in range(trips):
        tl.store(out_ptr + 3 * k, total)
        tl.store(out_ptr + 3 * k + 1, start + k * factor)
        tl.store(out_ptr + 3 * k + 2, (k + trips) * (k - trips))
        total += factor


@triton.jit
def nested_kernel(x_ptr, out_ptr, rows, trips, BLOCK: tl.constexpr):
    """An inner loop and a branch that use what is even and fixed in the outer one."""
    lanes = tl.arange(0, BLOCK)
    scale = rows * 2 + 1
    for k in range(tl.program_id(0), rows, tl.num_programs(0)):
        total = tl.zeros((BLOCK,), tl.float32)
        at = x_ptr + k * BLOCK
        for j in range(trips):
            total += tl.load(at + lanes) * (j * scale)
        if k % 2 == 0:
            total += k + scale
        tl.store(out_ptr + k * BLOCK + lanes, total)


@triton.jit
def backwards_kernel(x_ptr, out_ptr, trips, BLOCK: tl.constexpr):
    """Addresses that go down, and one that stays."""
    lanes = tl.arange(0, BLOCK)
    source = x_ptr + trips * BLOCK + lanes
    first = x_ptr + lanes
    for k in range(trips):
        source -= BLOCK
        tl.store(out_ptr + k * BLOCK + lanes, tl.load(source) + tl.load(first))


def copies(x, ints, out):
    copies_kernel[(3,)](x, out, TRIPS, STRIDE=5, BLOCK=8)


def triangular(x, ints, out):
    triangular_kernel[(1,)](x, out, TRIPS, BLOCK=8)


def swapping(x, ints, out):
    swapping_kernel[(1,)](x, x[100:], out, TRIPS, BLOCK=8)


def turning(x, ints, out):
    turning_kernel[(1,)](ints, TRIPS, BLOCK=8)


def wrapping(x, ints, out):
    wrapping_kernel[(1,)](ints, TRIPS, 2**31 - 31, 10)


def nested(x, ints, out):
    nested_kernel[(2,)](x, out, 10, TRIPS, BLOCK=8)


def backwards(x, ints, out):
    backwards_kernel[(1,)](x, out, TRIPS, BLOCK=8)


@triton.jit
def stages_kernel(x_ptr, bounds_ptr, out_ptr, ints_ptr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Loops of each program's own length: pointers and numbers that they carry, masks, a branch."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    lower, upper = tl.load(bounds_ptr + 2 * pid), tl.load(bounds_ptr + 2 * pid + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    scale = tl.load(x_ptr + pid)
    source, count, wide = x_ptr + lanes, 7 * pid, tl.full((), 2**31 - 40, tl.int32)
    for k in range(lower, upper, 2):
        at = k + lanes
        x = tl.load(source, mask=at < 9 + pid, other=0.5) + tl.load(x_ptr + 10 + at)
        total += tl.where(lanes <= k - pid, x, scale)
        if k > 5:
            total += 1
        tl.store(out_ptr + (pid * 16 + k) * BLOCK + lanes, total)
        source += 3
        count -= 2
        wide += 10
    tl.store(out_ptr + pid * 16 * BLOCK + 15 * BLOCK + lanes, total + tl.load(source))
    tl.store(ints_ptr + 2 * pid, count)
    tl.store(ints_ptr + 2 * pid + 1, wide)


def staged(*bounds):
    """A launch of programs whose loops go from the even bounds of one to those of another."""

    def launch(x, ints, out):
        places = torch.tensor(bounds, dtype=torch.int32)
        stages_kernel[(len(bounds),)](x, places, out, ints, STRIDE=3, BLOCK=4)

    return launch


LAUNCHES = [
    copies,
    triangular,
    swapping,
    turning,
    wrapping,
    nested,
    backwards,
    staged((0, 4), (0, 12), (0, 8), (0, 8)),
    staged((0, 12), (4, 12), (10, 12), (4, 12)),  # they end together
    staged((2, 2), (0, 12), (8, 0), (0, 6), (0, 6)),  # some run none
    staged((4, 4), (4, 14), (4, 14), (6, 4)),  # some run none, the others equally many
    staged((14, 14), (2, 14), (6, 14), (14, 2), (6, 14)),
    staged((0, 10), (2, 12), (2, 8)),  # neither begin nor end together
]


def results_of(launch):
    x = normal(200)
    ints = integers(64, low=0, high=1)
    out = torch.zeros(400)
    with mini_triton.profile(host=False) as p:
        launch(x, ints, out)
    return ints, out, p.loaded, p.stored


@pytest.mark.parametrize("launch", LAUNCHES)
def test_the_results_are_those_of_running_every_operation(launch, monkeypatch):
    ints, out, *counts = results_of(launch)
    monkeypatch.setattr(induction, "FEWEST_TRIPS", 10**9)
    every_ints, every_out, *every_counts = results_of(launch)
    assert_same(ints, every_ints)
    assert_same(out, every_out)
    assert counts == every_counts
    assert bool(ints.any()) or bool(out.any())


@pytest.mark.parametrize("launch", [launch for launch in LAUNCHES if launch.__name__ == "launch"])
def test_loops_of_different_lengths_whatever_the_chunk_size(launch):
    """One program at a time, two or three, and with every operation run: always the same bits."""
    ints, out, *counts = results_of(launch)
    for programs in (1, 2, 3):
        previous = mini_triton.set_device(ChunkedDevice(4 * programs))
        try:
            some_ints, some_out, *some_counts = results_of(launch)
        finally:
            mini_triton.set_device(previous)
        assert_same(some_ints, ints)
        assert_same(some_out, out)
        assert some_counts == counts


def test_what_python_would_give():
    ints, *_ = results_of(wrapping)

    def wrapped(n):
        return (n + 2**31) % 2**32 - 2**31

    start = 2**31 - 31
    for k in range(TRIPS):
        total, product, square = ints[3 * k : 3 * k + 3].tolist()
        assert total == product == wrapped(start + 10 * k)
        assert square == (k + TRIPS) * (k - TRIPS)


def test_only_loads_and_stores_are_left_of_a_loop_that_copies(monkeypatch):
    left = []
    run = induction.Induction.run

    def noted(self, *stage):
        left.append([op.name for op in self._block.ops])
        return run(self, *stage)

    monkeypatch.setattr(induction.Induction, "run", noted)
    results_of(backwards)
    assert left == [["tt.load", "tt.load", "arith.addf", "tt.store", "scf.yield"]]


def test_shorter_loops_keep_their_formulas(monkeypatch):
    """Where programs leave a loop sooner, or enter it later, no address is left to compute."""
    left = []
    run = induction.Induction.run

    def noted(self, frame, index, trips, passed):
        left.append((frame.count, trips, {op.name for op in self._block.ops}))
        return run(self, frame, index, trips, passed)

    monkeypatch.setattr(induction.Induction, "run", noted)
    results_of(staged((0, 4), (0, 12), (0, 8), (0, 8)))
    results_of(staged((0, 12), (4, 12), (10, 12), (4, 12)))
    assert [stage[:2] for stage in left] == [
        (4, range(2)), (3, range(2, 4)), (1, range(4, 6)),
        (1, range(2)), (3, range(2, 5)), (4, range(5, 6)),
    ]  # fmt: skip
    assert all({"tt.load", "tt.store"} <= names for *_, names in left)
    assert not any({"tt.addptr", "tt.splat", "arith.subi"} & names for *_, names in left)


@triton.jit
def counting_kernel(x_ptr, out_ptr, trips):
    """Only moves a pointer and a number, very often."""
    source, total = x_ptr, 5
    for _ in range(trips):
        source += 2
        total += 3
    tl.store(out_ptr, tl.load(source - 2 * trips + 1))
    tl.store(out_ptr + 1, total.to(tl.float32))


def test_a_loop_of_indices_alone_takes_no_time():
    x, out = normal(4), torch.empty(2)
    counting_kernel[(1,)](x, out, 100_000_000)
    assert out.tolist() == [x[1], 3e8]  # 300,000,005 in float32
