"""Index formulas are exact: every rule against the same operation on lanes, at random."""

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from mini_triton.execute.prepare import HANDLER_MODULES
from mini_triton.execute.registry import LAZY, PURE
from mini_triton.execute.tiles.affine import Affine, constant, found_in, per_program
from mini_triton.execute.tiles.values import dense
from mini_triton.ir.program import Op
from mini_triton.ir.types import Type

assert HANDLER_MODULES  # importing it registers the handlers
PROGRAMS = 3
SIZES = (4, 8)
ELEMENT = {torch.int32: "i32", torch.int64: "i64"}
near = st.integers(-40, 40)
#: Numbers near the ends of int32, where formulas must give way to wrapping lanes, and small ones.
numbers = st.one_of(
    near, near.map(lambda v: 2**31 - 1 - abs(v)), near.map(lambda v: abs(v) - 2**31)
)


@st.composite
def formulas(draw, dtype=torch.int32, rank=2):
    """A formula of some rank whose lanes all fit in its dtype."""
    steps = tuple(draw(st.sampled_from([0, 0, 1, 8, -1, 3, 1 << 20])) for _ in range(rank))
    sizes = tuple(n if s else 1 for s, n in zip(steps, SIZES[:rank], strict=True))
    if draw(st.booleans()):
        base = draw(numbers)
        formula = Affine(dtype, base, base, base, steps, sizes)
    else:
        lanes = torch.tensor([draw(numbers) for _ in range(PROGRAMS)])
        formula = Affine(dtype, lanes, int(lanes.min()), int(lanes.max()), steps, sizes)
    return formula.fits() or constant(draw(near), dtype, rank)


def same(result, expected):
    result, expected = torch.broadcast_tensors(dense(result), expected)
    assert result.dtype == expected.dtype
    assert torch.equal(result, expected)


def operation(name, result, *keywords, **attrs):
    return Op(name, types=(result,), keywords=keywords, attrs=attrs)


@pytest.mark.parametrize(
    "name",
    [
        "arith.addi",
        "arith.subi",
        "arith.muli",
        "arith.divsi",
        "arith.remsi",
        "arith.minsi",
        "arith.maxsi",
    ],
)
@given(a=formulas(), b=formulas(), as_lanes=st.booleans())
@settings(max_examples=60, deadline=None)
def test_arithmetic(name, a, b, as_lanes):
    """Where the rule answers, it answers what lanes would: wrapping and truncation included."""
    op = operation(name, Type("i32", SIZES))
    result = LAZY[name](op, a, b.dense if as_lanes else b)
    if result is not None:
        same(result, PURE[name](op, a.dense, b.dense))
        if isinstance(result, Affine):
            assert result.lowest <= int(result.dense.min())
            assert int(result.dense.max()) <= result.highest


@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge", "eq", "ne", "ult", "uge"])
@given(a=formulas(), b=formulas())
@settings(max_examples=60, deadline=None)
def test_comparisons(predicate, a, b):
    op = operation("arith.cmpi", Type("i1", SIZES), predicate)
    result = LAZY["arith.cmpi"](op, a, b)
    if result is not None:
        same(result, PURE["arith.cmpi"](op, a.dense, b.dense))


@given(a=formulas(torch.int64), wide=st.booleans())
@settings(max_examples=60, deadline=None)
def test_resizing(a, wide):
    name, source = ("arith.extsi", torch.int32) if wide else ("arith.trunci", torch.int64)
    a = a.with_dtype(source).fits() or constant(-7, source, 2)
    op = operation(name, Type("i64" if wide else "i32", SIZES))
    result = LAZY[name](op, a)
    if result is not None:
        same(result, PURE[name](op, a.dense))


@given(a=formulas(), axis=st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_moving_axes(a, axis):
    expanded = LAZY["tt.expand_dims"](operation("tt.expand_dims", Type("i32"), axis=axis), a)
    same(expanded, a.dense.unsqueeze(axis + 1))
    turned = LAZY["tt.trans"](operation("tt.trans", Type("i32"), order=[1, 0]), a)
    same(turned, a.dense.transpose(1, 2))


@given(a=formulas(rank=0), index=st.lists(st.integers(0, PROGRAMS - 1), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_scalars_splat_and_programs_part(a, index):
    tile = LAZY["tt.splat"](operation("tt.splat", Type("i32", SIZES)), a)
    same(tile, a.dense.reshape(-1, 1, 1))
    some = torch.tensor(index)
    same(a.narrow(some).dense.expand(len(index)), a.dense.expand(PROGRAMS)[some])


@given(a=formulas(), noise=st.booleans(), where=st.integers(0, 31))
@settings(max_examples=80, deadline=None)
def test_a_formula_is_found_in_lanes_only_if_all_fit(a, noise, where):
    lanes = a.dense.expand(PROGRAMS, *SIZES).clone()
    found = found_in(lanes)
    assert found is not None
    same(found, lanes)
    if noise and bool((lanes < 2**31 - 1).all()):
        lanes.view(PROGRAMS, -1)[1, where] += 1
        again = found_in(lanes)
        assert again is None or torch.equal(again.dense.expand(lanes.shape), lanes)


def test_what_is_no_index_has_no_formula():
    assert per_program(torch.tensor([1.0, 2.0])) is None
    assert per_program(torch.zeros(2, 3, dtype=torch.int32)) is None
    assert per_program(torch.tensor([1, 2], dtype=torch.int16)) is None


@triton.jit
def far_apart_kernel(out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, N)
    a = pid.to(tl.int64) * 2305843009213693952  # 2⁶¹
    tl.store(out_ptr + pid * (N + 1) + lanes, (a + lanes > -a).to(tl.int32))
    tl.store(out_ptr + pid * (N + 1) + N, (a > -a).to(tl.int32))


def test_numbers_further_apart_than_64_bits():
    """Their difference, as int64, would have the other sign in the last two programs."""
    out = torch.zeros(4, 5, dtype=torch.int32)
    far_apart_kernel[(4,)](out, N=4)
    assert out.tolist() == [[0, 1, 1, 1, 0], *[[1] * 5] * 3]
