"""The cache: what is written where, and what is refused."""

import numpy as np
import pytest
from transformer_lab import TINY, KVCache


def heads(value, batch=2, length=1):
    """K or V of `length` positions, all `value`."""
    return np.full((batch, length, TINY.n_kv_heads, TINY.d_head), float(value))


def test_writing_does_not_advance_and_the_length_says_where_it_goes():
    cache = KVCache(TINY, batch=2, max_len=5)
    assert cache.length == 0
    cache.write(0, heads(1, length=3), heads(-1, length=3))
    assert cache.length == 0
    cache.length += 3
    cache.write(0, heads(2), heads(-2))
    K, V = cache.read(0, 4)
    assert K.shape == V.shape == (2, 4, TINY.n_kv_heads, TINY.d_head)
    assert K[0, :, 0, 0].tolist() == [1, 1, 1, 2]
    assert V[1, :, -1, -1].tolist() == [-1, -1, -1, -2]


def test_layers_are_apart():
    cache = KVCache(TINY, batch=2)
    cache.write(0, heads(1), heads(2))
    cache.write(1, heads(3), heads(4))
    assert [cache.read(layer, 1)[0][0, 0, 0, 0] for layer in (0, 1)] == [1, 3]


def test_it_has_room_for_max_seq_positions_of_the_kv_heads_alone():
    cache = KVCache(TINY, batch=3)
    assert cache.max_len == TINY.max_seq
    # K and V of every layer, position and KV head, 8 bytes an element.
    assert cache.nbytes == 2 * TINY.n_layers * 3 * TINY.max_seq * 4 * TINY.d_head * 8


def test_what_is_read_is_no_copy_and_cannot_be_written_to():
    cache = KVCache(TINY, batch=2)
    cache.write(0, heads(1), heads(2))
    K, V = cache.read(0, 1)
    cache.write(0, heads(5), heads(6))
    assert K[0, 0, 0, 0] == 5 and V[0, 0, 0, 0] == 6
    with pytest.raises(ValueError, match="read-only"):
        K[:] = 0


def test_what_was_never_written_is_not_read():
    cache = KVCache(TINY, batch=2)
    cache.write(0, heads(1, length=2), heads(1, length=2))
    with pytest.raises(ValueError, match="layer 0 holds 2 positions; 3 are asked for"):
        cache.read(0, 3)
    with pytest.raises(ValueError, match="layer 1 holds 0 positions; 1 is asked for"):
        cache.read(1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.write(2, heads(1), heads(1)), "there is no layer 2; there are 2"),
        (lambda c: c.read(-1, 0), "there is no layer -1"),
        (lambda c: c.read(0, -1), "n is -1"),
        (lambda c: c.write(0, heads(1, length=65), heads(1, length=65)), "has room for 64"),
        (lambda c: c.write(0, heads(1, batch=1), heads(1, batch=1)), r"k has shape \(1, 1, 4"),
        (lambda c: c.write(0, heads(1), heads(1, length=2)), r"v has shape \(2, 2, 4.*, k \(2, 1"),
        (lambda c: KVCache(TINY, batch=0), "batch is 0; it is 1 or more"),
        (lambda c: KVCache(TINY, batch=1, max_len=0), "max_len is 0; it is 1 or more"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(KVCache(TINY, batch=2))
