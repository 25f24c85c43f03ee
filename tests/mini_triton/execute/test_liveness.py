"""The bound on a program's memory: values that are alive at once, not all that there are."""

import re

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import settings
from mini_triton.execute.liveness import _SCRATCH, peak_bytes
from mini_triton.execute.prepare import prepare

from tests.mini_triton.comparing import shown_place

HEAD = "module {{\n  tt.func public @k(%p: !tt.ptr<f32>) {{\n{}\n    tt.return\n  }}\n}}\n"
TILE = 1024 * 4


def peak(*lines):
    body = "\n".join(f"    {line}" for line in lines)
    return peak_bytes(prepare(HEAD.format(body), "k").program)


def chain(length):
    """Each value is used by the next one only."""
    lines = ["%v0 = arith.constant dense<1.0> : tensor<1024xf32>"]
    for n in range(1, length):
        lines.append(f"%v{n} = math.exp %v{n - 1} : tensor<1024xf32>")
    return lines


def test_a_chain_holds_two_values_at_a_time():
    assert peak(*chain(3)) == peak(*chain(30))
    assert peak(*chain(3)) == 8 + 2 * TILE + 1024 * _SCRATCH


@pytest.mark.parametrize("count", [2, 5])
def test_values_that_are_used_later_stay(count):
    lines = [f"%v{n} = arith.constant dense<{n}.0> : tensor<1024xf32>" for n in range(count)]
    lines.append("%s1 = arith.addf %v0, %v1 : tensor<1024xf32>")
    for n in range(2, count):
        lines.append(f"%s{n} = arith.addf %s{n - 1}, %v{n} : tensor<1024xf32>")
    assert peak(*lines) == 8 + (count + 1) * TILE + 1024 * _SCRATCH


def test_functions_that_call_each_other_often_are_looked_at_once():
    functions = [
        f"  tt.func private @f{n}() {{\n    tt.call @f{n + 1}() : () -> ()\n"
        f"    tt.call @f{n + 1}() : () -> ()\n    tt.return\n  }}\n"
        for n in range(30)
    ]
    text = HEAD.format("    tt.call @f0() : () -> ()").rstrip().removesuffix("}")
    last = "  tt.func private @f30() {\n    tt.return\n  }\n"
    assert prepare(text + "".join(functions) + last + "}\n", "k").peak_bytes < 100


@triton.jit
def square_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.exp(x)
    tl.store(y_ptr + i, x * y)


def test_a_program_whose_tiles_are_too_large_is_refused_before_it_runs():
    x, y = torch.zeros(4096), torch.full((4096,), 5.0)
    with settings.use(memory=16 * 4096), pytest.raises(mini_triton.OverBudget) as caught:
        square_kernel[(1,)](x, y, BLOCK=4096)
    message = str(caught.value)
    assert re.match(
        r"over budget: the tiles of a single program take [0-9,]+ bytes at once, and a launch may "
        r"take 65,536\n" + re.escape(shown_place(square_kernel, "tl.load")),
        message,
    )
    assert "^ 4,096 pointers, 32,768 bytes, 2 times" in message
    assert "do: choose smaller BLOCK sizes" in message
    assert (y == 5.0).all()


def test_the_bytes_that_a_refusal_names_are_enough():
    x, y = torch.zeros(4096), torch.full((4096,), 5.0)
    with settings.use(memory=16), pytest.raises(mini_triton.OverBudget) as caught:
        square_kernel[(1,)](x, y, BLOCK=4096)
    named = re.search(r"MINI_TRITON_MEMORY to (\d+)", str(caught.value))
    assert named is not None
    enough = int(named[1])
    with settings.use(memory=enough - 1), pytest.raises(mini_triton.OverBudget):
        square_kernel[(1,)](x, y, BLOCK=4096)
    with settings.use(memory=enough):
        square_kernel[(1,)](x, y, BLOCK=4096)
    assert (y == 0.0).all()
