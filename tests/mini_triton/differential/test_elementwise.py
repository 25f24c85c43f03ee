"""Arithmetic, comparisons, `where` and casts of all types, on tiles that broadcast."""

from hypothesis import given

from tests.mini_triton.differential.programs import examples
from tests.mini_triton.differential.straight_line import (
    ALL_KINDS,
    CAST_KINDS,
    CASTS,
    ELEMENTWISE,
    straight_line,
)


@given(program=straight_line(ELEMENTWISE, ALL_KINDS))
@examples(40)
def test_arithmetic(runner, program):
    runner.check(program)


@given(program=straight_line(CASTS, CAST_KINDS))
@examples(40)
def test_casts(runner, program):
    runner.check(program)
