"""Layouts against Triton's own conversion to linear layouts."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from mini_triton.hardware.layouts import aliases, blocked, parsed, scalar, sliced
from triton._C.libtriton import gluon_ir, ir, nvidia
from triton.experimental.gluon import language as gluon


@pytest.fixture(scope="module")
def triton_layout():
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    kept = [context]  # a builder without its context crashes
    return lambda layout, shape: (
        kept and builder.to_linear_layout(layout._to_ir(builder), list(shape))
    )


@st.composite
def blocked_layouts(draw):
    """(shape, per thread, threads, warps, order) of a tile of one to three axes."""
    rank = draw(st.integers(1, 3))
    order = draw(st.permutations(range(rank)))
    shape = [2 ** draw(st.integers(0, 6)) for _ in range(rank)]
    per_thread = [2 ** draw(st.integers(0, 3)) for _ in range(rank)]

    def split(bits):
        parts = [0] * rank
        for _ in range(bits):
            parts[draw(st.integers(0, rank - 1))] += 1
        return [2**n for n in parts]

    return shape, per_thread, split(5), split(draw(st.integers(0, 3))), list(order)


@settings(max_examples=80, deadline=None)
@given(drawn=blocked_layouts())
def test_blocked_layouts_are_tritons(triton_layout, drawn):
    shape, *sizes = drawn
    mine = blocked(tuple(shape), *map(tuple, sizes))
    theirs = triton_layout(gluon.BlockedLayout(*sizes), shape)
    # Whether registers that hold copies are listed differs between versions of Triton.
    assert [tuple(b) for b in theirs.reg_bases if any(b)] == [b for b in mine.register if any(b)]
    assert [tuple(b) for b in theirs.lane_bases] == list(mine.lane)
    assert [tuple(b) for b in theirs.warp_bases] == list(mine.warp)


@settings(max_examples=40, deadline=None)
@given(drawn=blocked_layouts(), axis=st.integers(0, 2))
def test_slices_are_tritons(triton_layout, drawn, axis):
    shape, *sizes = drawn
    if len(shape) == 1:
        return
    axis %= len(shape)
    shape[axis] = 1
    mine = sliced(blocked(tuple(shape), *map(tuple, sizes)), axis)
    kept = [size for n, size in enumerate(shape) if n != axis]
    theirs = triton_layout(gluon.SliceLayout(axis, gluon.BlockedLayout(*sizes)), kept)
    assert [tuple(b) for b in theirs.reg_bases] == [b for b in mine.register if any(b)]
    assert [tuple(b) for b in theirs.lane_bases] == list(mine.lane)
    assert [tuple(b) for b in theirs.warp_bases] == list(mine.warp)


@settings(max_examples=30, deadline=None)
@given(drawn=blocked_layouts())
def test_threads_without_copies_hold_every_element_once(drawn):
    shape, *sizes = drawn
    layout = blocked(tuple(shape), *map(tuple, sizes))
    held = layout.elements
    first = np.broadcast_to(layout.first_copies, held.shape)
    assert sorted(held[first].tolist()) == list(range(np.prod(shape)))


def test_a_scalar_is_in_every_thread():
    layout = scalar(4)
    assert layout.elements.shape == (4, 1, 32)
    assert not layout.elements.any()
    assert layout.first_copies.sum() == 1


_TTGIR = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], \
order = [1, 0]}>
#linear = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], \
warp = [[0], [64]], block = []}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1]}>
"""


def test_layouts_of_ttgir_are_read():
    named = aliases(_TTGIR)
    assert parsed("#blocked", (32, 16), named) == blocked((32, 16), (1, 4), (8, 4), (4, 1), (1, 0))
    of_rows = parsed("#ttg.slice<{dim = 1, parent = #blocked}>", (32,), named)
    assert of_rows == sliced(blocked((32, 1), (1, 4), (8, 4), (4, 1), (1, 0)), 1)
    linear = parsed("#linear", (128,), named)
    assert linear.warp == ((0,), (64,))
    assert linear.elements[2, 0, :3].tolist() == [64, 66, 68]
    assert linear.contiguous == 2


def test_a_layout_of_another_sort_is_not_known():
    assert parsed("#mma", (64, 64), aliases(_TTGIR)) is None
    assert parsed("#blocked", (64,), aliases(_TTGIR)) is None
