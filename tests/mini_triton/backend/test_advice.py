"""What to do about errors of Triton's that beginners see, by the words of the version at hand."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.backend.advice import advice

SCALE = 2.0


@triton.jit
def odd_range(x_ptr):
    tl.store(x_ptr + tl.arange(0, 100), 0.0)


@triton.jit
def size_is_no_constant(x_ptr, BLOCK):
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)


@triton.jit
def subscript(x_ptr):
    tl.store(x_ptr, x_ptr[1])


@triton.jit
def subscript_by_tile(x_ptr):
    i = tl.arange(0, 8)
    tl.store(x_ptr + i, x_ptr[i])


@triton.jit
def computes_with_a_pointer(x_ptr):
    tl.store(x_ptr, x_ptr * 2)


@triton.jit
def half_an_offset(x_ptr):
    tl.store(x_ptr + tl.program_id(0) / 2, 0.0)


@triton.jit
def branches_on_a_tile(x_ptr):
    i = tl.arange(0, 8)
    if i < 4:
        tl.store(x_ptr + i, 0.0)


@triton.jit
def begins_with_an_integer(x_ptr):
    total = 0
    for k in range(8):
        total += tl.load(x_ptr + k)
    tl.store(x_ptr, total)


@triton.jit
def dot_of_two_types(x_ptr):
    i = tl.arange(0, 16)
    a = tl.load(x_ptr + i[:, None] + i[None, :])
    tl.store(x_ptr + i[:, None] + i[None, :], tl.dot(a, a.to(tl.float16)))


@triton.jit
def dot_of_other_depths(x_ptr):
    a = tl.zeros((16, 32), tl.float16)
    tl.store(x_ptr, tl.sum(tl.dot(a, a)))


@triton.jit
def uses_a_global(x_ptr):
    tl.store(x_ptr, SCALE)


@triton.jit
def uses_torch(x_ptr):
    tl.store(x_ptr, torch.exp(tl.load(x_ptr)))


@triton.jit
def stores(x_ptr):
    tl.store(x_ptr, 0.0)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (lambda x: odd_range[(1,)](x), "triton.next_power_of_2"),
        (lambda x: size_is_no_constant[(1,)](x, 8), "BLOCK: tl.constexpr"),
        (lambda x: subscript[(1,)](x), "tl.load(x_ptr + i)"),
        (lambda x: subscript_by_tile[(1,)](x), "tl.load(x_ptr + i)"),
        (lambda x: computes_with_a_pointer[(1,)](x), "what tl.load(pointer) gives"),
        (lambda x: half_an_offset[(1,)](x), "// divides"),
        (lambda x: branches_on_a_tile[(1,)](x), "tl.where"),
        (lambda x: begins_with_an_integer[(1,)](x), "0.0"),
        (lambda x: dot_of_two_types[(1,)](x), "b.to(a.dtype)"),
        (lambda x: dot_of_other_depths[(1,)](x), "tl.trans"),
        (lambda x: uses_a_global[(1,)](x), "tl.constexpr"),
        (lambda x: uses_torch[(1,)](x), "tl.exp, not torch.exp"),
        (lambda x: stores[(1,)](1.5), "pass a tensor"),
        (lambda x: stores[(1,)](np.ones(1)), "torch.from_numpy"),
        (lambda x: stores[1](x), "is a tuple"),
        (lambda x: stores(x), "with its grid"),
    ],
)
def test_a_beginners_faults(launch, words):
    with pytest.raises((triton.CompilationError, TypeError, RuntimeError)) as caught:
        launch(torch.ones(512))
    error = caught.value
    assert words in advice(error)
    if isinstance(error, triton.CompilationError):
        assert error.__notes__[-1] == f"do: {advice(error)}"


def test_what_is_not_known_gets_no_advice():
    assert advice(TypeError("unhashable type: 'list'")) == ""
