"""Launches executed again on other inputs: what an argument was is found by its contents."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl

from grader.testing.replay import Unclear, replay, substitute
from grader.testing.trace import Trace


@triton.jit
def triple(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 3 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def tripled(t):
    result = torch.empty_like(t, memory_format=torch.contiguous_format)
    triple[(1,)](t, result, t.numel(), BLOCK=64)
    return result


def followed(program, x):
    """(what `program` makes of other numbers, those numbers): by replay of what it does with x."""
    trace = Trace((x,))
    before = mini_triton.set_device(_Traced(trace))
    try:
        result = program(x)
    finally:
        mini_triton.set_device(before)
    other = substitute(x.reshape(-1), 7).reshape(x.shape)
    return replay(trace, (other,), result)[0], other


class _Traced:
    def __init__(self, trace):
        self._trace = trace

    def launch(self, launch):
        return self._trace.launch(mini_triton.LocalDevice(), launch)


PROGRAMS = {
    "whole": tripled,
    "a chain": lambda x: tripled(tripled(x) + 0) / 1,
    "transposed and back": lambda x: tripled(x.t().contiguous()).t(),
    "columns": lambda x: torch.stack([tripled(c.contiguous()) for c in x.t()]).t(),
    "parts joined": lambda x: torch.cat([tripled(row) for row in x]).view(x.shape),
    "a slice": lambda x: torch.cat([tripled(x[:2]), tripled(x[2:])]),
    "padded": lambda x: tripled(torch.nn.functional.pad(x, (1, 1)))[:, 1:-1],
    "one by one": lambda x: tripled(x.flatten().flip(0)).flip(0).view(x.shape),
    "between zeros": lambda x: tripled(torch.stack([x, torch.zeros_like(x)], -1))[..., 0],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("how", PROGRAMS)
def test_moved_numbers_are_followed(how, dtype):
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(3)).to(dtype)
    x[1, 2:4] = x[0, 0]  # equal numbers: which of them was loaded makes no difference
    result, other = followed(PROGRAMS[how], x)
    factor = 9 if how == "a chain" else 3
    assert torch.equal(result, _times(other, factor))


def _times(t, factor):
    once = (t.float() * 3).to(t.dtype)
    return once if factor == 3 else (once.float() * 3).to(t.dtype)


def test_made_numbers_are_not():
    x = torch.randn(4, 6)
    result, _ = followed(lambda x: tripled(x.square()), x)
    assert torch.equal(result, 3 * x.square())
    result, _ = followed(lambda x: tripled(x) + 1, x)
    assert torch.equal(result, 3 * x + 1)


def test_between_two_inputs_nothing_is_guessed():
    trace = Trace((torch.tensor([1.5, 2.5]), torch.tensor([1.5, 2.5])))
    same, other = torch.tensor([5.0, 6.0]), torch.tensor([7.0, 8.0])
    assert replay(trace, (same, same), torch.tensor([1.5, 2.5]))[0].tolist() == [5.0, 6.0]
    with pytest.raises(Unclear):
        replay(trace, (same, other), torch.tensor([1.5, 2.5]))


def test_between_two_inputs_whoever_asks_may_guess():
    trace = Trace((torch.tensor([1.5, 2.5, 3.5]), torch.tensor([1.5, 2.5, 4.5])))
    inputs = (torch.tensor([5.0, 6.0, 7.0]), torch.tensor([8.0, 9.0, 10.0]))
    for fits_both in ([1.5], [1.5, 2.5], [2.5, 1.5]):
        for guess, numbers in enumerate(({1.5: 5.0, 2.5: 6.0}, {1.5: 8.0, 2.5: 9.0})):
            found, _ = replay(trace, inputs, torch.tensor(fits_both), guess)
            assert found.tolist() == [numbers[number] for number in fits_both]
    for guess in (0, 1):  # only one has them all
        found, _ = replay(trace, inputs, torch.tensor([2.5, 4.5, 1.5]), guess)
        assert found.tolist() == [9, 10, 8]


def test_padded_rows_are_found_as_rows():
    rows, twice = torch.tensor([[1.5, 2.5], [3.5, 4.5]]), torch.tensor([[2.5, 3.5], [7.0, 7.0]])
    trace = Trace((rows, twice))
    padded = torch.nn.functional.pad(rows, (0, 2))
    found, _ = replay(trace, (10 * rows, 100 * twice), padded)
    assert torch.equal(found, 10 * padded)


def test_inputs_have_to_be_laid_out_as_the_calls():
    trace = Trace((torch.randn(3, 4),))
    with pytest.raises(ValueError, match="laid out as those of the call"):
        replay(trace, (torch.randn(4, 3).t(),), None)


def test_substitutes_are_a_function_of_the_number():
    x = torch.tensor([0.0, 1.5, -0.0, 1.5, 2.5, -1.5])
    first, other = substitute(x, 1), substitute(x, 2)
    assert torch.equal(first, substitute(x, 1))
    assert first[0] == first[2] == 0
    assert first[1] == first[3]
    assert len(set(first.tolist())) == 4
    assert not torch.equal(first, other)
    many = substitute(torch.randn(10_000, generator=torch.Generator().manual_seed(0)), 3)
    assert abs(float(many.mean())) < 0.05
    assert abs(float(many.std()) - 1) < 0.05
