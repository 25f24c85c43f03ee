"""How numbers go up over the programs of a chunk, alone and in sums."""

import gc
import weakref

import numpy as np
import pytest
import torch
from mini_triton.execute.tiles.coordinate import Coordinate, added, spread_of


def coordinate(values):
    lanes = torch.as_tensor(values)
    return Coordinate(lanes, int(lanes.min()), int(lanes.max()))


def counted(spread):
    """The numbers that a spread's digits say."""
    numbers = [spread.first]
    for count, step in spread.digits:
        numbers = [n + step * digit for n in numbers for digit in range(count)]
    return numbers


PIDS = torch.arange(24)


@pytest.mark.parametrize(
    ("values", "digits"),
    [
        (PIDS + 5, ((24, 1),)),
        (PIDS * 3, ((24, 3),)),
        (PIDS // 6, ((4, 1), (6, 0))),
        (PIDS % 6, ((4, 0), (6, 1))),
        (PIDS // 2 % 4 * 10, ((3, 0), (4, 10), (2, 0))),
        (-PIDS, None),
        (PIDS**2, None),
        (torch.tensor([0, 1, 2, 3, 7, 8]), None),
    ],
)
def test_digits_of_one(values, digits):
    spread = spread_of(((coordinate(values), 1),))
    assert spread.digits == digits
    assert spread.numbers == values.tolist()
    if digits is not None:
        assert counted(spread) == values.tolist()


def test_digits_of_sums():
    row, column, pid = coordinate(PIDS // 6), coordinate(PIDS % 6), coordinate(PIDS)
    for terms, digits in (
        (((row, 100), (column, 8)), ((4, 100), (6, 8))),
        (((row, 6), (column, 1)), ((24, 1),)),  # what was taken apart, put together
        (((column, 8), (pid, 2)), ((4, 12), (6, 10))),
        (((row, 1), (coordinate(PIDS // 4), 1)), None),
    ):
        spread = spread_of(terms)
        assert spread.digits == digits
        assert spread.numbers == sum(c.values * f for c, f in terms).tolist()
        assert digits is None or counted(spread) == spread.numbers
        assert spread_of(terms) is spread


@pytest.mark.parametrize(
    "digits",
    [
        ((4, 10), (6, 0)),
        ((6, 0), (4, 10)),
        ((2, 0), (3, 5), (4, 0)),
        ((2, 100), (3, 0), (2, 7), (2, 0)),
        ((2, 8), (4, 2), (3, 0)),  # rising by one step
        ((3, 2), (4, 0), (2, 4)),  # not in order
        ((3, 4), (2, 0), (3, 2)),  # numbers that meet
        ((24, 0),),
    ],
)
def test_numbers_that_repeat_by_digits_without_step(digits):
    """As many programs as there may be, each distinct number once, in order."""
    values = torch.tensor([11])
    for count, step in digits:
        values = (values[:, None] + torch.arange(count) * step).reshape(-1)
    found = spread_of(((coordinate(values), 1),)).distinct
    numbers, index = np.unique(values.numpy(), return_inverse=True)
    if len(numbers) > 1 and 2 * len(numbers) > len(values):
        assert found is None
        return
    assert found.numbers == numbers.tolist()
    if len(numbers) > 1:
        assert np.array_equal(found.sharing.index.numpy(), index)
        step = numbers[1] - numbers[0]
        even = bool((np.diff(numbers) == step).all())
        assert not even or found.digits == ((len(numbers), step),)


def test_distinct_numbers():
    spread = spread_of(((coordinate(PIDS // 6), 10),))
    assert spread.distinct.numbers == [0, 10, 20, 30]
    assert spread.distinct.digits == ((4, 10),)
    assert np.array_equal(spread.distinct.sharing.index.numpy(), PIDS.numpy() // 6)
    assert spread_of(((coordinate(PIDS), 1),)).distinct is None


def test_sums_of_terms():
    a, b = coordinate(PIDS), coordinate(PIDS % 5)
    assert added(((a, 2),), ((b, 3),), -1) == ((a, 2), (b, -3))
    assert added(((a, 2), (b, 1)), ((a, 2),), -1) == ((b, 1),)
    assert added((), ((a, 2),), 1) == ((a, 2),)


def test_narrowing_meets_again():
    """The same programs give the same coordinate, so that formulas still cancel."""
    a, index = coordinate(PIDS), torch.tensor([3, 1])
    assert a.narrow(index) is a.narrow(index)
    assert a.narrow(index).values.tolist() == [3, 1]
    alone = a.narrow(torch.tensor([7]))
    assert (alone.low, alone.high) == (7, 7)


def test_numbers_go_with_their_last_reference():
    """Else what a launch leaves behind is in the way of the next one's tiles."""
    one, other = coordinate(PIDS + 1), coordinate(PIDS * 2)
    spread_of(((one, 1), (other, 3)))
    spread_of(((other, 3), (one, 1)))
    values = [weakref.ref(one.values), weakref.ref(other.values)]
    gc.disable()
    try:
        del one, other
        assert [value() for value in values] == [None, None]
    finally:
        gc.enable()
