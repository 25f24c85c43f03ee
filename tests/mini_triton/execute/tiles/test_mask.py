"""Masks as formulas are what comparing lanes gives: which lanes are on, how many, in what boxes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mini_triton.execute.tiles.affine import Affine
from mini_triton.execute.tiles.mask import Mask, below_zero, decided, is_zero

PROGRAMS = 5
SIZES = (4, 8)


@st.composite
def differences(draw):
    """A formula of rank 2 with small numbers, often with one step only, as bounds have it."""
    axis = draw(st.sampled_from([None, 0, 1, 2]))
    steps = [0, 0]
    for a in range(2):
        if axis in (a, 2):
            steps[a] = draw(st.sampled_from([1, 2, 8, -1, -3]))
    sizes = tuple(n if s else 1 for s, n in zip(steps, SIZES, strict=True))
    if draw(st.booleans()):
        base = draw(st.integers(-20, 20))
        return Affine(torch.int32, base, base, base, tuple(steps), sizes)
    lanes = torch.tensor(draw(st.lists(st.integers(-20, 20), min_size=5, max_size=5)))
    return Affine(torch.int32, lanes, int(lanes.min()), int(lanes.max()), tuple(steps), sizes)


def lanes_of(mask):
    return mask.dense.expand(PROGRAMS, *SIZES)


def assert_is(mask, expected):
    """Lanes, count and boxes of a mask."""
    expected = expected.expand(PROGRAMS, *SIZES)
    assert torch.equal(lanes_of(mask), expected)
    assert mask.count(SIZES, PROGRAMS) == int(expected.sum())
    drawn = torch.zeros(PROGRAMS, *SIZES, dtype=torch.bool)
    for box in mask.boxes(PROGRAMS, 100):
        part = drawn[box.start : box.end]
        for axis, bounds in enumerate(box.ranges):
            if bounds is not None:
                part = part.narrow(axis + 1, bounds[0], bounds[1] - bounds[0])
        assert not part.any()
        part.fill_(True)
    assert torch.equal(drawn, expected)


@given(difference=differences())
@settings(max_examples=150, deadline=None)
def test_where_a_formula_is_negative_or_zero(difference):
    lanes = difference.dense
    for mask, expected in (
        (below_zero(difference), lanes < 0),
        (is_zero(difference), lanes == 0),
        (is_zero(difference, negated=True), lanes != 0),
    ):
        if mask is not None:
            assert_is(mask, expected)


@given(a=differences(), b=differences(), index=st.lists(st.integers(0, 4), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_both_and_moving_and_narrowing(a, b, index):
    x, y = below_zero(a), below_zero(b)
    if x is None or y is None:
        return
    both = x.both(y)
    assert_is(both, (a.dense < 0) & (b.dense < 0))
    some = torch.tensor(index)
    narrowed = both.narrow(some)
    assert torch.equal(narrowed.dense.expand(len(index), *SIZES), lanes_of(both)[some])
    assert narrowed.count(SIZES, len(index)) == int(lanes_of(both)[some].sum())
    turned = both.transpose((1, 0))
    assert torch.equal(turned.dense.expand(PROGRAMS, 8, 4), lanes_of(both).transpose(1, 2))
    wide = both.expand_dims(0)
    assert torch.equal(wide.dense.expand(PROGRAMS, 1, *SIZES), lanes_of(both).unsqueeze(1))


def test_one_bound_counts_what_comparing_counts():
    """Rows of 8 lanes whose bound moves down: full, partial, then empty."""
    rows = torch.arange(PROGRAMS) * 8 - 20
    mask = below_zero(Affine(torch.int32, rows, -20, 12, (1,), (8,)))
    assert mask.count((8,), PROGRAMS) == 8 + 8 + 4
    assert [(box.start, box.end, box.ranges) for box in mask.boxes(PROGRAMS, 8)] == [
        (0, 2, ((0, 8),)), (2, 3, ((0, 4),)),
    ]  # fmt: skip
    assert mask.boxes(PROGRAMS, 2) is None


@pytest.mark.parametrize("answer", [True, False])
def test_a_decided_mask(answer):
    mask = decided(answer, 2)
    assert mask.decided is answer
    assert_is(mask, torch.tensor(answer))
    assert_is(Mask((), (), answer).splat(2), torch.tensor(answer))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("wide", [True, False])
def test_selecting_few_lanes(axis, wide):
    base = torch.tensor([3, -1, 40, 100, 63])  # in the tile, or not
    steps, sizes = ((-1, 0), (64, 1)) if axis == 0 else ((0, -1), (1, 64))
    mask = is_zero(Affine(torch.int32, base, -1, 100, steps, sizes))
    shape = (5, 64, 64) if wide else (1, *sizes)
    a, b = torch.randn(5, 1, 1), torch.randn(shape)
    assert torch.equal(mask.select(a, b), torch.where(mask.dense, a, b))


def test_what_is_on_in_many_lanes_is_not_selected():
    mask = below_zero(Affine(torch.int32, torch.tensor([-20, -9]), -20, -9, (1,), (32,)))
    assert mask.select(torch.zeros(1, 1), torch.ones(2, 32)) is None
