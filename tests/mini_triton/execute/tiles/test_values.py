"""Buffers, pointers and the joining of what programs computed apart."""

import mini_triton
import pytest
import torch
from mini_triton.execute.tiles.affine import Affine, constant
from mini_triton.execute.tiles.values import Buffer, Pointer, merge, narrow, pointer_at

from tests.mini_triton.comparing import assert_same

FLAT = torch.arange(64, dtype=torch.int32)
X = Buffer("x", FLAT, (64,), (1,))
Y = Buffer("y", torch.zeros(16), (16,), (1,), position=1)


def test_buffers_know_their_bytes_and_who_shares_them():
    upper, middle = (Buffer("v", FLAT[a:b], (b - a,), (1,)) for a, b in ((32, 64), (16, 40)))
    lower = Buffer("v", FLAT[:32], (32,), (1,))
    assert (X.nbytes, upper.nbytes, upper.address - X.address) == (256, 128, 128)
    assert X.overlaps(upper)
    assert upper.overlaps(middle)
    assert not upper.overlaps(lower)
    assert not X.overlaps(Y)


def test_a_buffer_read_as_another_dtype():
    assert_same(X.as_dtype(torch.int8), FLAT.view(torch.int8))
    assert_same(X.as_dtype(torch.int64), FLAT.view(torch.int64))
    odd = Buffer("odd", FLAT[:5], (5,), (1,))
    assert odd.as_dtype(torch.int64).numel() == 2  # the last 4 bytes make no int64
    with pytest.raises(mini_triton.KernelError, match="needs an address divisible by 8"):
        Buffer("odd", FLAT[1:5], (4,), (1,)).as_dtype(torch.int64)


def start(buffer=X, rank=1):
    dtype = buffer.flat.dtype
    return Pointer(buffer, constant(0, torch.int64, rank), None, dtype)


RANGE = Affine(torch.int32, 3, 3, 3, (2,), (4,))


def test_pointers_keep_formulas_and_lanes_apart():
    odd = torch.tensor([[5, 1, 7, 2]])
    at = start().advance(RANGE).advance(odd).advance(RANGE)
    assert at.offset == Affine(torch.int64, 6, 6, 6, (4,), (4,))
    assert_same(at.rest, odd)
    assert at.lanes.tolist() == [[11, 11, 21, 20]]


def test_pointer_casts_keep_addresses():
    at = start().advance(RANGE)
    for dtype in (torch.int8, torch.float32, torch.int64):
        same = at.cast(dtype).absolute().lanes
        assert_same(same, at.absolute().lanes, str(dtype))
    assert at.cast(torch.float32).buffer is X
    assert at.cast(torch.int16).lanes.tolist() == [[6, 10, 14, 18]]
    steps = at.cast(torch.int64).advance(RANGE).absolute().lanes - at.absolute().lanes
    assert steps.tolist() == [[24, 40, 56, 72]]


def test_values_of_some_programs():
    some = torch.tensor([2, 0])
    lanes = torch.arange(6).reshape(3, 2)
    assert narrow(lanes, some).tolist() == [[4, 5], [0, 1]]
    assert narrow(lanes[:1], some).shape == (1, 2)  # the same for all programs
    base = Affine(torch.int32, torch.tensor([7, 8, 9]), 7, 9, (1,), (2,))
    narrowed = narrow(base, some)
    assert isinstance(narrowed, Affine)
    assert narrowed.dense.tolist() == [[9, 10], [7, 8]]
    at = narrow(start().advance(base), some)
    assert isinstance(at, Pointer)
    assert at.lanes.tolist() == [[9, 10], [7, 8]]


def test_what_programs_computed_apart_is_joined_in_their_order():
    """Tiles, tiles that were one number, formulas, and pointers into different tensors."""
    left, right = torch.tensor([0, 2]), torch.tensor([1])
    first = [torch.tensor([[1, 2], [5, 6]]), constant(4, torch.int32, 1), start().advance(RANGE)]
    second = [torch.tensor([[3]]), torch.tensor([[7, 8]], dtype=torch.int32), start(Y)]
    tiles, mixed, pointers = merge([(left, first), (right, second)], 3)
    assert tiles.tolist() == [[1, 2], [3, 3], [5, 6]]
    assert mixed.tolist() == [[4, 4], [7, 8], [4, 4]]
    assert pointers.buffer is None
    relative = pointers.lanes - torch.tensor([[X.address], [Y.address], [X.address]])
    assert relative.tolist() == [[12, 20, 28, 36], [0] * 4, [12, 20, 28, 36]]


def test_pointers_into_one_tensor_stay_with_it():
    both = merge([(torch.tensor([1]), [start()]), (torch.tensor([0]), [start().advance(RANGE)])], 2)
    assert both[0].buffer is X
    assert both[0].lanes.tolist() == [[3, 5, 7, 9], [0, 0, 0, 0]]
    assert pointer_at(X, torch.tensor([[4]]), torch.int32).lanes.tolist() == [[4]]
