"""Launches on several threads: results, counts and errors are those of one."""

import subprocess
import sys
import threading
import time

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import settings
from mini_triton.execute import machine
from mini_triton.execute.threads import cores, in_order

from tests.mini_triton.comparing import assert_same, normal
from tests.mini_triton.execute.test_machine import everything


@pytest.fixture
def always(monkeypatch):
    """Threads pay for the smallest launch."""
    monkeypatch.setattr(machine, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(machine, "_WORTH_A_THREAD_STRAIGHT", 1)


@pytest.mark.parametrize("threads", [2, 5])
def test_nothing_depends_on_threads(always, threads):
    with settings.use(threads=1):
        expected, counts = everything()
    with settings.use(threads=threads):
        results, again = everything()
    assert again == counts
    for result, right in zip(results, expected, strict=True):
        assert_same(result, right)


@triton.jit
def last_wins_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """All programs store to the same elements."""
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + tl.program_id(0) * N + i))
    tl.atomic_add(out_ptr + N + i, tl.load(x_ptr + tl.program_id(0) * N + i))


def test_stores_and_sums_are_in_grid_order(always):
    x, outs = normal(50, 8), []
    for threads in (1, 3):
        outs.append(torch.zeros(16))
        with settings.use(threads=threads):
            last_wins_kernel[(50,)](x, outs[-1], N=8)
    assert_same(outs[1], outs[0])
    assert_same(outs[1][:8], x[-1])


@triton.jit
def outside_kernel(x_ptr, out_ptr, bad, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i))
    if pid >= bad:
        tl.store(out_ptr + 1000 + i, 1.0)


def test_the_error_is_that_of_one_thread(always):
    x, messages = normal(40, 8), []
    for threads in (1, 2, 7):
        out = torch.zeros(40, 8)
        with settings.use(threads=threads), pytest.raises(mini_triton.OutOfBounds) as caught:
            outside_kernel[(40,)](x, out, 23, N=8)
        assert not out.any()
        messages.append(str(caught.value))
    assert "program (23, 0, 0)" in messages[0]
    assert len(set(messages)) == 1


def test_one_thread_does_it_where_no_other_can_be_started(always, monkeypatch):
    def refused(*arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(machine, "in_order", refused)
    x, out = normal(50, 8), torch.zeros(16)
    with settings.use(threads=2):
        last_wins_kernel[(50,)](x, out, N=8)
    assert_same(out[:8], x[-1])


def test_results_are_taken_in_order_and_few_wait():
    running, most, taken = [], [], []
    lock = threading.Lock()

    def run(number):
        with lock:
            running.append(number)
            most.append(len(running))
        time.sleep(0.002 * (number % 3))
        with lock:
            running.remove(number)
        return number * number

    in_order(range(12), run, taken.append, lambda: None, workers=3)
    assert taken == [n * n for n in range(12)]
    assert 1 < max(most) <= 3


def test_the_first_error_in_order_is_raised():
    def run(number):
        time.sleep(0.01 if number == 1 else 0.0)
        if number in (1, 2):
            raise ValueError(number)
        return number

    taken = []
    with pytest.raises(ValueError, match="1"):
        in_order(range(8), run, taken.append, lambda: None, workers=2)
    assert taken == [0]


def test_a_process_has_a_core():
    assert cores() >= 1


_BIG = """
import resource, sys
import torch, triton, triton.language as tl
from mini_triton import settings

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x_ptr + i)
    b = tl.exp(a); c = tl.sin(a); d = tl.cos(a); e = tl.sqrt(a); f = tl.log(a); g = a * 2.0
    tl.store(out_ptr + i, tl.sort(a) + b * c * d * e * f * g, mask=a > -1.0)

x, out = torch.rand(1 << 22), torch.ones(1 << 22)
kernel[(1,)](x, out, N=1024)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with settings.use(memory=int(sys.argv[1]), threads=int(sys.argv[2])):
    kernel[(1 << 12,)](x, out, N=1024)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(("memory", "threads"), [(24 << 20, 1), (24 << 20, 2), (200 << 20, 2)])
def test_a_launch_stays_within_its_memory(tmp_path, memory, threads):
    """Resident memory of a process, in KiB: 16 MiB of output, of which copies are kept or not."""
    program = tmp_path / "big.py"
    program.write_text(_BIG)
    grown = subprocess.run(
        [sys.executable, program, str(memory), str(threads)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert int(grown) << 10 < memory + (4 << 20)  # and what Python and malloc take besides
