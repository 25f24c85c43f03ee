"""Distinct elements, and the picture of who touched them."""

import numpy as np
import torch
from mini_triton.execute.tiles.values import Buffer
from mini_triton.hardware.access_map import AccessMap, Touched


def buffer(tensor):
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    flat = tensor.as_strided((span if tensor.numel() else 0,), (1,))
    return Buffer("x", flat, tuple(tensor.shape), tuple(tensor.stride()))


def tiles(touched, programs, base, lanes, item=4, reads=True, writes=False):
    arrays = (np.array(values) for values in (programs, base, lanes))
    touched.tiles(*arrays, item, reads, writes)


def test_elements_count_once():
    touched = Touched(buffer(torch.zeros(8)))
    tiles(touched, [0, 1, 2], [0, 2, 0], [0, 1, 2])
    tiles(touched, [3], [6], [0], reads=False, writes=True)
    assert (touched.loaded_bytes, touched.stored_bytes) == (20, 4)


def test_the_lowest_program_owns_a_cell():
    touched = Touched(buffer(torch.zeros(4)))
    tiles(touched, [2, 3], [2, 0], [0, 1])
    tiles(touched, [0, 1], [1, 1], [0])
    touched.elements(np.array([1, 5]), np.array([3, 0]), 4, False, True)
    found = touched.picture()
    assert (found.rows, found.columns) == (1, 4)
    assert found.reads == [1, 3, 1, 1]
    assert found.reader == [3, 0, 2, 2]
    assert found.writes == [1, 0, 0, 1]
    assert found.writer == [5, -1, -1, 1]
    assert (found.last_reader, found.last_writer) == (3, 5)


def test_rows_and_columns_are_those_of_the_tensor():
    """A transposed view: element (i, j) lies at j · 2 + i."""
    touched = Touched(buffer(torch.zeros(3, 2).t()))
    tiles(touched, [0, 1], [0, 1], [0, 2, 4])
    found = touched.picture()
    assert (found.rows, found.columns) == (2, 3)
    assert found.reader == [0, 0, 0, 1, 1, 1]


def test_large_tensors_are_downsampled_whole():
    touched = Touched(buffer(torch.zeros(100, 200)))
    tiles(touched, range(100), np.arange(100) * 200, np.arange(200))
    found = touched.picture()
    assert (found.rows, found.columns) == (32, 64)
    assert sum(found.reads) == sum(found.elements) == 20_000
    assert found.reader[:: found.columns] == [-(-100 * row // 32) for row in range(32)]
    assert (found.last_reader, found.last_writer) == (99, -1)


def test_leading_axes_are_rows_and_vectors_are_long():
    assert Touched(buffer(torch.zeros(2, 3, 5))).picture().rows == 6
    line = Touched(buffer(torch.zeros(1000))).picture()
    assert (line.rows, line.columns) == (1, 128)
    assert Touched(buffer(torch.zeros(()))).picture().elements == [1]
    assert Touched(buffer(torch.zeros(0, 4))).picture().reads == [0] * 4


def test_an_expanded_tensor_has_the_elements_of_its_memory():
    touched = Touched(buffer(torch.zeros(1, 3).expand(4, 3)))
    tiles(touched, range(4), [0] * 4, [0, 1, 2])
    found = touched.picture()
    assert sum(found.elements) == 3
    assert sum(found.reads) == 12
    assert touched.loaded_bytes == 12


def test_what_lies_between_elements_is_in_no_cell():
    touched = Touched(buffer(torch.zeros(4, 4)[:, :2]))
    tiles(touched, [0], [0], np.arange(14), reads=False, writes=True)
    assert touched.stored_bytes == 56
    assert sum(touched.picture().writes) == 8


def test_casts_touch_elements_of_the_tensor():
    touched = Touched(buffer(torch.zeros(8, dtype=torch.int16)))
    tiles(touched, [0], [1], [0], item=4)
    tiles(touched, [0], [1], [0], item=1, reads=False, writes=True)
    assert (touched.loaded.nonzero()[0].tolist(), touched.stored.nonzero()[0].tolist()) == (
        [2, 3],
        [0],
    )


def test_pictures_are_plain_data():
    touched = Touched(buffer(torch.zeros(2, 3)))
    tiles(touched, [0], [0], [0, 1])
    found = touched.picture()
    assert AccessMap.from_dict(found.to_dict()) == found
