"""What goes wrong in an operation is an error that names it, and changes nothing."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.errors import BadProgram, OverBudget
from mini_triton.execute.failure import failure
from mini_triton.execute.registry import PURE
from mini_triton.ir.program import Op
from mini_triton.ir.types import Type

from tests.mini_triton.comparing import shown_place


@triton.jit
def two_steps_kernel(x_ptr):
    tl.store(x_ptr, 1.0)
    tl.store(x_ptr + 1, tl.erf(tl.load(x_ptr)))


def test_an_exception_of_a_handler(monkeypatch):
    def wrong(op, x):
        raise IndexError("no such thing\nand more")

    monkeypatch.setitem(PURE, "math.erf", wrong)
    mini_triton.execute.prepare.prepare.cache_clear()
    x = torch.zeros(2)
    with pytest.raises(BadProgram) as caught:
        two_steps_kernel[(1,)](x)
    mini_triton.execute.prepare.prepare.cache_clear()
    message = str(caught.value)
    assert message.startswith(
        "bad program: math.erf of f32 failed: IndexError: no such thing\n"
        + shown_place(two_steps_kernel, "tl.erf")
    )
    assert isinstance(caught.value.__cause__, IndexError)
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_no_memory(error):
    found = failure("k", Op("tt.splat", types=(Type("f32", (8,)),)), error)
    assert isinstance(found, OverBudget)
    assert "there is no memory for tt.splat: 8 float32, 32 bytes" in str(found)


@triton.jit
def loop_kernel(x_ptr, n):
    for _ in range(n):
        tl.store(x_ptr, tl.load(x_ptr) + 1)


@triton.jit
def long_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y_ptr + at, tl.exp(tl.load(x_ptr + at)))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_budget_is_of_all_threads_together(threads):
    """Several chunks, of which each one is within it."""
    x, y = torch.zeros(64, 1 << 16), torch.zeros(64, 1 << 16)
    with (
        mini_triton.settings.use(steps=40, threads=threads),
        pytest.raises(OverBudget, match="more than 40 operations"),
    ):
        long_kernel[(64,)](x, y, N=1 << 16)
    assert not y.any()


def test_a_budget_of_steps():
    x = torch.zeros(1)
    with mini_triton.settings.use(steps=2_000):
        loop_kernel[(1,)](x, 100)
        assert x.item() == 100
        with pytest.raises(OverBudget, match="more than 2,000 operations"):
            loop_kernel[(1,)](x, 10_000)
    assert x.item() == 100
