"""Control flow that programs share and in which they part: loops, branches, returns, calls."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, integers, normal, run, simulator_only


@triton.jit
def ranges_kernel(bounds_ptr, out_ptr, seen_ptr, MOST: tl.constexpr):
    """bounds (P, 3): each program's lower, upper, step. seen (P, MOST) gets the loop's indices."""
    pid = tl.program_id(0)
    lower = tl.load(bounds_ptr + pid * 3)
    upper = tl.load(bounds_ptr + pid * 3 + 1)
    step = tl.load(bounds_ptr + pid * 3 + 2)
    count = 0
    total = 0
    for i in range(lower, upper, step):
        tl.store(seen_ptr + pid * MOST + count, i)
        total += i * i
        count += 1
    tl.store(out_ptr + pid * 2, count)
    tl.store(out_ptr + pid * 2 + 1, total)


def check_ranges(bounds):
    bounds = torch.tensor(bounds, dtype=torch.int32)
    programs = len(bounds)
    out = torch.empty((programs, 2), dtype=torch.int32)
    seen = torch.full((programs, 32), -99, dtype=torch.int32)
    run(ranges_kernel, bounds, out, seen, grid=(programs,), MOST=32)
    for row, (lower, upper, step) in enumerate(bounds.tolist()):
        indices = list(range(lower, upper, step))
        assert seen[row].tolist() == indices + [-99] * (32 - len(indices)), (lower, upper, step)
        assert out[row].tolist() == [len(indices), sum(i * i for i in indices)]


def test_every_program_has_its_own_range():
    """Equal, shorter, empty, backwards (empty) and negative ranges; steps of their own."""
    check_ranges([[0, 5, 1], [0, 5, 1], [3, 3, 1], [7, 2, 1], [-4, 4, 2], [0, 31, 1], [1, 30, 7]])


def test_all_ranges_empty_or_equal():
    check_ranges([[5, 5, 1], [9, 2, 3]])
    check_ranges([[2, 14, 4]] * 5)
    check_ranges([[i, i + 8, 2] for i in range(6)])  # equally long, at different places


@triton.jit
def scalar_range_kernel(out_ptr, lower, upper, step):
    total = 0
    for i in range(lower, upper, step):
        total += i
    tl.store(out_ptr, total)


@pytest.mark.parametrize("bounds", [(0, 10, 1), (3, 50, 7), (10, 0, 3), (-5, -1, 2), (10, 2, -3)])
def test_ranges_from_arguments(bounds):
    """A step that the front end does not know to be negative: the loop runs while i < upper."""
    out = torch.empty(1, dtype=torch.int32)
    run(scalar_range_kernel, out, *bounds)
    assert out.item() == (sum(range(*bounds)) if bounds[2] > 0 else 0)


@triton.jit
def countdown_kernel(out_ptr, n):
    total = 0
    for i in range(n, -1, -2):
        total = total * 10 + i
    for i in tl.range(0, n, 3, num_stages=2):
        total = total * 10 + i
    tl.store(out_ptr, total)


def test_a_negative_step_that_the_front_end_knows():
    out = torch.empty(1, dtype=torch.int32)
    run(countdown_kernel, out, 7)
    assert out.item() == 7531036


@simulator_only("a GPU would hang")
@pytest.mark.parametrize("step", [0, -1])
def test_a_loop_that_would_never_end_is_an_error(step):
    out = torch.zeros(1, dtype=torch.int32)
    with pytest.raises(mini_triton.KernelError, match=rf"(?s)step is {step}.*test_control.py:\d"):
        scalar_range_kernel[(1,)](out, 0, 10, step)
    assert out.item() == 0
    bounds = torch.tensor([[0, 3, 1], [0, 3, step]], dtype=torch.int32)
    seen = torch.zeros(64, dtype=torch.int32)
    with pytest.raises(mini_triton.KernelError, match=rf"program \(1, 0, 0\).*step is {step}"):
        ranges_kernel[(2,)](bounds, seen, seen, MOST=32)


@triton.jit
def loaded_range_kernel(bounds_ptr, out_ptr):
    lower, upper = tl.load(bounds_ptr), tl.load(bounds_ptr + 1)
    count = 0
    for _ in range(lower, upper, tl.load(bounds_ptr + 2)):
        count += 1
    tl.store(out_ptr, count)


def test_ranges_of_wide_and_narrow_integers():
    out = torch.empty(1, dtype=torch.int32)
    run(loaded_range_kernel, torch.tensor([2**31 - 5, 2**32 - 1, 2**29]), out)
    assert out.item() == 5
    run(loaded_range_kernel, torch.tensor([-100, 90, 30], dtype=torch.int8), out)
    assert out.item() == 7


@triton.jit
def nested_kernel(n_ptr, m_ptr, out_ptr):
    """Loops of different lengths in loops of different lengths, with a branch inside."""
    pid = tl.program_id(0)
    n, m = tl.load(n_ptr + pid), tl.load(m_ptr + pid)
    total, odd = 0, 0
    for i in range(n):
        for j in range(i, m):
            if (i + j + pid) % 2 == 0:
                total += i * 10 + j
            else:
                odd += 1
        total = total * 3 % 10007
    tl.store(out_ptr + pid, total * 1000 + odd)


def test_nested_loops_of_different_lengths():
    n = torch.tensor([0, 3, 5, 3, 1, 7, 7], dtype=torch.int32)
    m = torch.tensor([4, 4, 0, 9, 6, 7, 2], dtype=torch.int32)
    out = torch.empty(7, dtype=torch.int32)
    run(nested_kernel, n, m, out, grid=(7,))
    for pid in range(7):
        total = odd = 0
        for i in range(n[pid]):
            for j in range(i, m[pid]):
                if (i + j + pid) % 2 == 0:
                    total += i * 10 + j
                else:
                    odd += 1
            total = total * 3 % 10007
        assert out[pid] == total * 1000 + odd


@triton.jit
def walking_kernel(x_ptr, lengths_ptr, out_ptr, N: tl.constexpr):
    """A tile of pointers and an accumulator carried by a loop of each program's own length."""
    pid = tl.program_id(0)
    at = x_ptr + pid * N + tl.arange(0, 4)
    total = tl.zeros((4,), tl.float32)
    for _ in range(tl.load(lengths_ptr + pid)):
        total += tl.load(at)
        at += 4
    tl.store(out_ptr + pid * 8 + tl.arange(0, 4), total)
    tl.store(out_ptr + pid * 8 + 4 + tl.arange(0, 4), tl.load(at - 4))  # where the walk ended


def test_pointers_carried_by_a_loop():
    x = integers(5, 32, low=0, high=100, dtype=torch.float32)
    lengths = torch.tensor([1, 8, 3, 3, 5], dtype=torch.int32)
    out = torch.empty(5, 8)
    run(walking_kernel, x, lengths, out, grid=(5,), N=32)
    for pid, length in enumerate(lengths.tolist()):
        walk = x[pid].view(8, 4)[:length]
        assert_same(out[pid], torch.cat([walk.sum(0), walk[-1]]))


@triton.jit
def windows_kernel(x_ptr, out_ptr, n, WINDOW: tl.constexpr, STEP: tl.constexpr):
    """Loops that end at one place and begin at each program's own, with one of them inside."""
    pid = tl.program_id(0)
    total = tl.zeros((4,), tl.float32)
    inner = 0
    for i in range(tl.maximum(n - WINDOW * pid, 0), n, STEP):
        total = total * 2 + tl.load(x_ptr + i + tl.arange(0, 4))
        for j in range(pid - i, 3, 2):
            inner += j * (pid + 1)
    tl.store(out_ptr + pid * 8 + tl.arange(0, 4), total)
    tl.store(out_ptr + pid * 8 + 4, inner.to(tl.float32))


@pytest.mark.parametrize(("n", "step"), [(0, 1), (3, 1), (12, 3), (11, 3), (24, 3)])
def test_loops_that_end_at_one_place(n, step):
    """Program 0 makes no trip, the last ones equally many."""
    x = integers(32, low=0, high=9, dtype=torch.float32)
    out = torch.zeros(7, 8)
    run(windows_kernel, x, out, n, grid=(7,), WINDOW=3, STEP=step)
    for pid in range(7):
        total, inner = torch.zeros(4), 0
        for i in range(max(n - 3 * pid, 0), n, step):
            total = total * 2 + x[i : i + 4]
            inner += sum(j * (pid + 1) for j in range(pid - i, 3, 2))
        assert_same(out[pid, :4], total)
        assert out[pid, 4] == inner


@triton.jit
def branches_kernel(x_ptr, flag_ptr, out_ptr, other_ptr, N: tl.constexpr):
    """Values, pointers and stores in branches in which programs part, nested."""
    pid, i = tl.program_id(0), tl.arange(0, N)
    flag = tl.load(flag_ptr + pid)
    x = tl.load(x_ptr + pid * N + i)
    target = out_ptr + pid * N
    if flag > 0:
        x = x * 2
        if flag > 1:
            x = x + 100
            tl.store(other_ptr + pid, flag)
        elif pid < 3:
            target = out_ptr + (tl.num_programs(0) + pid) * N
    else:
        tl.store(other_ptr + pid, -1)
        x = -x
    tl.store(target + i, x)


def test_branches_with_values_pointers_and_stores():
    flags = torch.tensor([1, 0, 2, 1, 2, -3, 1], dtype=torch.int32)
    x = normal(7, 8)
    out, other = torch.zeros(14, 8), torch.zeros(7, dtype=torch.int32)
    run(branches_kernel, x, flags, out, other, grid=(7,), N=8)
    right, beside = torch.zeros(14, 8), torch.zeros(7, dtype=torch.int32)
    for pid, flag in enumerate(flags.tolist()):
        row = x[pid] * 2 if flag > 0 else -x[pid]
        right[pid + 7 if flag == 1 and pid < 3 else pid] = row + 100 if flag > 1 else row
        beside[pid] = flag if flag > 1 else 0 if flag > 0 else -1
    assert_same(out, right)
    assert_same(other, beside)


@triton.jit
def collatz_kernel(n_ptr, steps_ptr):
    pid = tl.program_id(0)
    n = tl.load(n_ptr + pid)
    steps = 0
    while n > 1 and steps < 1000:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    tl.store(steps_ptr + pid, steps)


def test_while_loops_part():
    n = torch.tensor([1, 2, 3, 27, 6, 1, 97, 0], dtype=torch.int32)
    steps = torch.empty(8, dtype=torch.int32)
    run(collatz_kernel, n, steps, grid=(8,))
    for start, found in zip(n.tolist(), steps.tolist(), strict=True):
        count = 0
        while start > 1:
            start = start // 2 if start % 2 == 0 else 3 * start + 1
            count += 1
        assert found == count


@triton.jit
def returning_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = tl.load(x_ptr + pid)
    if x < 0:
        tl.store(out_ptr + pid, -1.0)
        return
    tl.store(out_ptr + pid, x * 10)


@pytest.mark.parametrize("n", [0, 5, 8, 11])
def test_some_programs_return_early(n):
    """Programs past n would read outside x, did they go on."""
    x = normal(8)[: max(n, 1)].contiguous()
    out = torch.zeros(8)
    run(returning_kernel, x, out, min(n, 8), grid=(8,))
    right = torch.zeros(8)
    right[: min(n, 8)] = torch.where(x < 0, -1.0, x * 10)[:n]
    assert_same(out, right)


@triton.jit
def statistics(x):
    """Several values from a helper."""
    mean = tl.sum(x) / x.numel
    return mean, tl.max(x), x - mean


@triton.jit
def static_kernel(x_ptr, out_ptr, N: tl.constexpr, TIMES: tl.constexpr):
    pid, i = tl.program_id(0), tl.arange(0, N)
    mean, largest, centred = statistics(tl.load(x_ptr + pid * N + i))
    for k in tl.static_range(TIMES):
        if k % 2 == 0:
            centred += largest * k
    tl.store(out_ptr + pid * N + i, centred + mean)


def test_helpers_that_return_tuples_and_static_ranges():
    x = integers(3, 8, low=-50, high=50, dtype=torch.float32)
    out = torch.empty_like(x)
    run(static_kernel, x, out, grid=(3,), N=8, TIMES=5)
    mean = x.mean(1, keepdim=True)
    assert_same(out, x - mean + 6 * x.amax(1, keepdim=True) + mean)


@triton.jit(noinline=True)
def clipped(x, limit):
    if limit < 0:
        return x
    return tl.minimum(tl.maximum(x, -limit), limit)


@triton.jit(noinline=True)
def store_and_sum(out_ptr, at, x, y):
    tl.store(out_ptr + at, x)
    return x + y, x - y


@triton.jit
def calling_kernel(x_ptr, limit_ptr, out_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    total = 0
    for k in range(pid):
        total += clipped(x, tl.load(limit_ptr + pid) + k)
    both, apart = store_and_sum(out_ptr, pid * 3, total, pid)
    tl.store(out_ptr + pid * 3 + 1, both)
    tl.store(out_ptr + pid * 3 + 2, apart)


def test_functions_that_are_not_inlined():
    """Called in loops of different lengths, returning early in some programs only."""
    x = integers(6, low=-9, high=9)
    limits = torch.tensor([3, -1, 2, -2, 0, 5], dtype=torch.int32)
    out = torch.empty(6, 3, dtype=torch.int32)
    run(calling_kernel, x, limits, out, grid=(6,))
    for pid in range(6):
        total = 0
        for limit in range(limits[pid], limits[pid] + pid):
            total += int(x[pid]) if limit < 0 else max(-limit, min(limit, int(x[pid])))
        assert out[pid].tolist() == [total, total + pid, total - pid]


@triton.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    tl.store(out_ptr + (z * ny + y) * nx + x, x + 100 * y + 10000 * z + 1000000 * nz)


@pytest.mark.parametrize("grid", [(5,), (3, 4), (2, 3, 4), (1, 1, 6), (1, 7)])
def test_program_ids_of_one_to_three_axes(grid):
    nx, ny, nz = (*grid, 1, 1)[:3]
    out = torch.full((nz, ny, nx), -1, dtype=torch.int32)
    run(grid_kernel, out, grid=grid)
    x, y, z = torch.arange(nx), torch.arange(ny), torch.arange(nz)
    right = x + 100 * y[:, None] + 10000 * z[:, None, None] + 1000000 * nz
    assert_same(out, right.int())


UNSIGNED_LOOP = """
module {
  tt.func public @k(%p: !tt.ptr<i32>, %first: i32, %last: i32) {
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %n = scf.for unsigned %i = %first to %last step %one iter_args(%sum = %zero) -> (i32) : i32 {
      %next = arith.addi %sum, %one : i32
      tt.store %p, %i : !tt.ptr<i32>
      scf.yield %next : i32
    }
    %q = tt.addptr %p, %one : !tt.ptr<i32>, i32
    tt.store %q, %n : !tt.ptr<i32>
    tt.return
  }
}
"""


UNSIGNED_LOOPS = """
module {
  tt.func public @k(%p: !tt.ptr<i32>, %last: i32) {
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %start = arith.constant 2147483644 : i32
    %pid = tt.get_program_id x : i32
    %first = arith.addi %start, %pid : i32
    %n = scf.for unsigned %i = %first to %last step %one iter_args(%sum = %zero) -> (i32) : i32 {
      %next = arith.addi %sum, %i : i32
      scf.yield %next : i32
    }
    %q = tt.addptr %p, %pid : !tt.ptr<i32>, i32
    tt.store %q, %n : !tt.ptr<i32>
    tt.return
  }
}
"""


@pytest.mark.parametrize("last", [0, 2**31 - 3, 2**31 + 1, 2**31 + 9])
def test_unsigned_loops_of_different_lengths(last):
    """They begin at 2^31 − 4 + i, where signed numbers end, and end at one place."""
    out = torch.full((8,), 7, dtype=torch.int32)
    signed = last - 2**32 if last >= 2**31 else last
    launch = mini_triton.Launch("k", UNSIGNED_LOOPS, (8, 1, 1), [out, signed], ["p", "last"])
    mini_triton.LocalDevice().launch(launch)
    for pid in range(8):
        total = sum(range((2**31 - 4 + pid) % 2**32, last))
        assert (int(out[pid]) - total) % 2**32 == 0


@pytest.mark.parametrize(
    ("first", "last", "trips", "final"),
    [(2**31 - 2, 2**31 + 2, 4, -(2**31) + 1), (2**32 - 1, 3, 0, 7), (0, 3, 3, 2)],
)
def test_a_loop_over_unsigned_numbers(first, last, trips, final):
    """Triton's front end makes none today; the counter's bits are those of unsigned integers."""
    out = torch.full((2,), 7, dtype=torch.int32)
    launch = mini_triton.Launch("k", UNSIGNED_LOOP, (1, 1, 1), [out, first, last], ["p", "a", "b"])
    mini_triton.LocalDevice().launch(launch)
    assert out.tolist() == [final, trips]


@triton.jit
def bounds_kernel(lower_ptr, upper_ptr, step_ptr, out_ptr):
    pid = tl.program_id(0)
    trips = 0
    lower, upper = tl.load(lower_ptr + pid), tl.load(upper_ptr + pid)
    for _ in range(lower, upper, tl.load(step_ptr + pid)):
        trips += 1
    tl.store(out_ptr + pid, trips)


def test_bounds_further_apart_than_64_bits():
    lower, upper = torch.tensor([-3, 0, 3]) << 61, torch.tensor([3, 3, -3]) << 61
    out = torch.zeros(3, dtype=torch.int32)
    bounds_kernel[(3,)](lower, upper, torch.tensor([1, 1, 1]) << 61, out)
    assert out.tolist() == [6, 3, 0]
