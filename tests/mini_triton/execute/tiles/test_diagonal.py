"""Masks below a diagonal: the lanes are those of comparing numbers, and selecting is `where`."""

import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.tiles import diagonal
from mini_triton.execute.tiles.affine import Affine
from mini_triton.execute.tiles.diagonal import below_diagonal

from tests.mini_triton.comparing import assert_same, normal, run

SIZES = (4, 8)


def formula(base, steps, sizes=SIZES, dtype=torch.int64):
    low, high = int(base.min()), int(base.max())
    sizes = tuple(n if step else 1 for n, step in zip(sizes, steps, strict=True))
    return Affine(dtype, base, low, high, steps, sizes)


@pytest.mark.parametrize("far", [0, 2**29 - 20, 2**29, 2**31, 2**45])
@pytest.mark.parametrize("steps", [(1, -1), (-1, 1), (3, 2), (-5, -1), (1 << 20, -3)])
def test_lanes_are_where_the_formula_is_negative(steps, far):
    rows = formula(torch.tensor([far - 9, far, far + 3, far + 40]), steps)
    columns = formula(torch.tensor([far + 2]), (0, 0))
    difference = rows.plus(columns, -1)
    mask = below_diagonal(difference)
    assert_same(mask.dense, difference.dense < 0)
    assert_same(mask.narrow(torch.tensor([2, 0])).dense, difference.dense[[2, 0]] < 0)


def test_a_mask_of_three_axes():
    difference = formula(torch.tensor([-20, 3, 0]), (7, 1, -9), (2, 4, 8))
    assert_same(below_diagonal(difference).dense, difference.dense < 0)


def test_programs_with_one_diagonal_have_one_mask():
    difference = formula(torch.tensor([-2, -2, -2]), (1, -1))
    assert_same(below_diagonal(difference).dense, difference.dense[:1] < 0)


def test_numbers_that_might_wrap_are_left_to_lanes():
    assert below_diagonal(formula(torch.tensor([2**61 + 9, 0]), (1, -1))) is None
    assert below_diagonal(formula(torch.tensor([-(2**61), 0]), (1, -1))) is None


BASES = {
    "some_crossed": [-40, -3, 40, -40, 2, -41, 50, -99],
    "one_off": [-40, -40, 40],
    "all_on": [-40, -12, -99],
    "all_off": [40, 12, 7],
}


@pytest.mark.parametrize("bases", BASES.values(), ids=BASES.keys())
@pytest.mark.parametrize("others", ["one", "of_the_tile", "of_programs"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_selecting(bases, others, dtype):
    difference = formula(torch.tensor(bases), (1, -1))
    programs = len(bases)
    shape = {"one": (1, 1, 1), "of_the_tile": (1, *SIZES), "of_programs": (programs, *SIZES)}
    a, b = normal(programs, *SIZES).to(dtype), normal(*shape[others]).to(dtype) + 7
    before = a.clone()
    selected = below_diagonal(difference).select(a, b)
    assert_same(selected, torch.where(difference.dense < 0, a, b))
    assert_same(a, before)


def test_where_a_diagonal_crosses_most_tiles_lanes_are_quicker():
    mask = below_diagonal(formula(torch.tensor([0, 1, -40]), (1, -1)))
    assert mask.select(normal(3, *SIZES), normal(1, 1, 1)) is None


@triton.jit
def triangle_kernel(x_ptr, out_ptr, first, BLOCK: tl.constexpr):
    """Masks of rows and columns that select, guard a load and a store, and are combined."""
    pid = tl.program_id(0)
    rows, cols = first + pid * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    at = pid * BLOCK * BLOCK + tl.arange(0, BLOCK)[:, None] * BLOCK + cols[None, :]
    below = cols[None, :] <= rows[:, None]
    band = below & (rows[:, None] < cols[None, :] + 5)
    x = tl.load(x_ptr + at)
    y = tl.where(below, x, -float("inf")) + tl.where(band, 3.0, x)
    y += tl.load(x_ptr + at, mask=below, other=2.0)
    tl.store(out_ptr + at, y, mask=cols[None, :] > rows[:, None] - 9)


@pytest.mark.parametrize("first", [-24, -12, 0, 3])
def test_masks_of_a_kernel(first):
    x, out = normal(6, 8, 8), torch.zeros(6, 8, 8)
    run(triangle_kernel, x, out, first, grid=(6,), BLOCK=8)
    rows = first + torch.arange(48).view(6, 8, 1)
    cols = torch.arange(8)
    below = cols <= rows
    right = torch.where(below, x, -torch.inf) + torch.where(below & (rows < cols + 5), 3.0, x)
    right = right + torch.where(below, x, 2.0)
    assert_same(out, torch.where(cols > rows - 9, right, 0.0))


def test_lanes_are_computed_of_crossed_tiles_only(monkeypatch):
    """Six tiles, of which the diagonal crosses one, twice the same."""
    computed = []
    lanes = diagonal._lanes

    def noted(base, *rest):
        computed.append(len(base))
        return lanes(base, *rest)

    monkeypatch.setattr(diagonal, "_lanes", noted)
    diagonal._one.cache_clear()
    difference = formula(torch.tensor([-40, 0, -50, 40, -60, 0]), (1, -1))
    for _ in range(2):
        below_diagonal(difference).select(normal(6, *SIZES), normal(1, 1, 1))
    assert computed == [1]
