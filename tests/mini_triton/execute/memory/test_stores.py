"""Stores wait until a launch has succeeded, or what they overwrite is copied; either is undone."""

import tempfile

import pytest
import torch
from mini_triton.execute.memory.stores import Copies, Stores, TooManyStores
from mini_triton.execute.tiles.values import Buffer


def buffer(*values, dtype=torch.float32):
    flat = torch.tensor(values, dtype=dtype)
    return Buffer("x", flat, tuple(flat.shape), (1,))


def setting(x, at, value):
    def write():
        x.flat[at] = value

    return write


def test_stores_wait_until_the_end():
    x = buffer(1, 2, 3)
    stores = Stores([x], most=100, most_copied=100)
    stores.add(setting(x, 0, 7), 8)
    stores.add(setting(x, 0, 8), 8)
    assert x.flat.tolist() == [1, 2, 3]
    stores.finish()
    assert x.flat.tolist() == [8, 2, 3]


@pytest.mark.parametrize("most", [0, 20])
def test_what_is_too_much_to_keep_is_done_and_can_be_undone(most):
    x = buffer(1, 2, 3)
    stores = Stores([x], most, most_copied=100)
    for at in range(3):
        stores.add(setting(x, at, 9), 8)
    assert x.flat.tolist() == [9, 9, 9]
    stores.undo()
    assert x.flat.tolist() == [1, 2, 3]


def test_stores_of_a_later_chunk_follow():
    x = buffer(1, 2, 3)
    first, later = (Stores([x], 20, 100, ahead=ahead) for ahead in (False, True))
    later.add(setting(x, 0, 2), 16)
    first.add(setting(x, 0, 1), 8)
    first.follow(later)  # 24 bytes: all are done, in order
    assert x.flat[0] == 2
    first.undo()
    assert x.flat[0] == 1


def test_stores_ahead_of_others_can_only_be_kept():
    x = buffer(1, 2, 3)
    stores = Stores([x], 10, 100, ahead=True)
    stores.add(setting(x, 0, 2), 8)
    with pytest.raises(TooManyStores):
        stores.add(setting(x, 0, 3), 8)
    assert x.flat[0] == 1


@pytest.mark.parametrize("most", [1000, 10])  # in memory, in a file
def test_copies(most):
    x, y = buffer(1, 2, 3), buffer(True, False, dtype=torch.bool)
    copies = Copies([x, y], most)
    x.flat.fill_(0)
    y.flat.fill_(True)
    copies.restore()
    assert x.flat.tolist() == [1, 2, 3]
    assert y.flat.tolist() == [True, False]
    copies.close()


def test_copies_stay_in_memory_where_no_file_can_be_made(monkeypatch):
    def refused():
        raise OSError("no space left")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    x = buffer(1, 2, 3)
    copies = Copies([x], most=1)
    x.flat.fill_(0)
    copies.restore()
    assert x.flat.tolist() == [1, 2, 3]
