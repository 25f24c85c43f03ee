"""An operation writes over its operand only where nobody can tell."""

import pytest
import torch
from mini_triton.execute import reuse
from mini_triton.execute.registry import OVER, PURE
from mini_triton.execute.reuse import written_over
from mini_triton.ir.program import Op

from tests.mini_triton.comparing import assert_same
from tests.mini_triton.execute.test_machine import everything

A, B = 1, 2
SHAPE = (64, 2048)


def add(dead=(A, B), operands=(A, B)):
    return Op("arith.addf", operands=operands, results=(3,), dead=dead, over=OVER["arith.addf"])


def given(b=None):
    """Values by slot, and a list of them as operands."""
    values = {A: torch.full(SHAPE, 2.0), B: torch.full((64, 1), 3.0) if b is None else b}
    return values, [values[A], values[B]]


def test_the_operand_that_ends_takes_the_result():
    values, operands = given()
    where = operands[0].data_ptr()
    result = written_over(add(), values, operands)
    assert result.data_ptr() == where
    assert (result == 5).all()
    assert A not in values


def test_either_operand_will_do():
    values, operands = given(b=torch.full(SHAPE, 3.0))
    where = operands[1].data_ptr()
    assert written_over(add(dead=(B,)), values, operands).data_ptr() == where
    assert (operands[0] == 2).all()
    assert list(values) == [A]


def test_one_that_stands_twice():
    values = {A: torch.full(SHAPE, 2.0)}
    operands = [values[A]] * 2
    assert (written_over(add(dead=(A,), operands=(A, A)), values, operands) == 4).all()


def kept(tensor):
    return tensor


def view(tensor):
    return tensor[:1]


@pytest.mark.parametrize("hold", [kept, view])
def test_one_that_somebody_holds_is_left_alone(hold):
    values, operands = given()
    held = hold(operands[0])
    assert written_over(add(), values, operands) is None
    assert (held == 2).all()


def test_views_are_left_alone():
    """As loads are, of a tensor of the launch."""
    tensor = torch.full(SHAPE, 2.0)
    values = {A: tensor.as_strided(SHAPE, tensor.stride()), B: torch.full((1, 1), 3.0)}
    assert written_over(add(), values, list(values.values())) is None


def test_one_that_lives_on_is_left_alone():
    values, operands = given()
    assert written_over(add(dead=(B,)), values, operands) is None
    assert (values[A] == 2).all()


def test_a_result_that_does_not_fit():
    values, operands = given(b=torch.full(SHAPE, 3.0))
    values[A] = operands[0] = torch.full((64, 4096), 2.0)[:, :2048]
    assert written_over(add(dead=(A,)), values, operands) is None


def test_eight_bit_floats_are_left_to_their_handler():
    values, operands = given()
    values[A] = operands[0] = operands[0].to(torch.float8_e5m2)
    assert written_over(add(), values, operands) is None


@pytest.mark.parametrize("name", sorted(OVER))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_bits_are_the_same(name, dtype):
    make = torch.Generator().manual_seed(1)
    operands = [
        (10 * torch.randn(37, 1025, generator=make)).to(dtype),
        torch.randn(37, 1, generator=make).to(dtype),
    ]
    try:
        expected = PURE[name](Op(name), *operands)
    except TypeError:
        del operands[1]
        expected = PURE[name](Op(name), *operands)
    over = OVER[name](*operands, out=operands[0])
    assert torch.equal(over.view(torch.uint8), expected.view(torch.uint8))


def test_no_result_depends_on_it(monkeypatch):
    expected, counts = everything()
    monkeypatch.setattr(reuse, "_FEWEST_ELEMENTS", 1)
    results, again = everything()
    assert again == counts
    for result, right in zip(results, expected, strict=True):
        assert_same(result, right)
