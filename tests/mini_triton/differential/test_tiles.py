"""Views, reductions, scans, sorts and gathers."""

from hypothesis import given

from tests.mini_triton.differential.programs import examples
from tests.mini_triton.differential.straight_line import straight_line
from tests.mini_triton.differential.tile_steps import TILE_KINDS, TILES


@given(program=straight_line(TILES, TILE_KINDS))
@examples(30)
def test_any_values(runner, program):
    runner.check(program)


@given(program=straight_line(TILES, TILE_KINDS, tame=True))
@examples(20)
def test_values_whose_sums_are_exact(runner, program):
    runner.check(program)
