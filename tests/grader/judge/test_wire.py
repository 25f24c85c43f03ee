"""What crosses between the processes arrives as it left, and nothing else arrives at all."""

import json
import socket
import struct

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.judge import wire
from grader.testing.record import Record


def through(value):
    """A value after it has been sent and received."""
    encoder = wire.Encoder()
    header = {"value": encoder.value(value)}
    encoder.seal()
    message = wire.unpack(wire.pack(header, encoder.storages)[8:])
    return message.value(message.header["value"])


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(PLAIN)
def test_plain_values(value):
    assert repr(through(value)) == repr(value)


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.bool],
)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x[2],
        lambda x: x[:1].expand(5, 6),
        lambda x: x[0, 0],
        lambda x: x[:0],
        lambda x: x[:, :, None].permute(2, 0, 1),
    ],
)
def test_tensors_keep_dtype_shape_strides_and_bytes(dtype, view):
    x = view((torch.arange(24).reshape(4, 6) % 2).to(dtype))
    y = through(x)
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert torch.equal(x, y)
    if x.numel():
        assert y.stride() == x.stride()


def test_nan_and_infinities_travel():
    x = torch.tensor([float("nan"), float("inf"), -0.0])
    assert torch.equal(through(x).view(torch.int32), x.view(torch.int32))


def test_tensors_that_share_memory_keep_sharing_it():
    base = torch.arange(12.0)
    a, b, c = through((base[:8], base[4:], torch.zeros(3)))
    a[4] = 99
    assert b[0] == 99
    assert not c.any()


def test_only_the_bytes_that_are_needed_travel():
    base = torch.arange(10_000.0)
    encoder = wire.Encoder()
    encoder.value(base[5_000:5_010])
    encoder.seal()
    assert sum(storage.numel() for storage in encoder.storages) <= 40 + 16


def test_arrays_and_dtypes_travel():
    array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)[:, ::-1]
    assert numpy.array_equal(through(array), array)
    assert through(numpy.float32(2.5)) == 2.5
    assert through(torch.bfloat16) is torch.bfloat16


class Odd(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "object"),
        (torch.zeros(2).as_subclass(Odd), "Odd"),
        (torch.nn.Parameter(torch.zeros(2)), "Parameter"),
        (torch.zeros(2, device="meta"), "Tensor"),
        (torch.eye(2).to_sparse(), "Tensor"),
        (lambda: None, "function"),
        ({1: 2}, "dict"),
        ({1, 2}, "set"),
    ],
)
def test_what_does_not_travel_arrives_as_its_types_name(value, name):
    arrived = through(value)
    assert isinstance(arrived, wire.Foreign)
    assert type(arrived).__name__ == name
    assert repr([arrived]) == f"[<{name}>]"  # no address: a message is the same in every run


def test_too_much_is_refused_where_it_is_sent(monkeypatch):
    monkeypatch.setattr(wire, "MAX_FRAME", wire.MAX_HEADER + 100)
    with pytest.raises(wire.TooLarge):
        wire.pack({}, [torch.zeros(101, dtype=torch.uint8)])
    nested = []
    for _ in range(30):
        nested = [nested]
    with pytest.raises(wire.TooLarge, match="nested"):
        wire.Encoder().value(nested)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_a_protocol_error(noise):
    with pytest.raises(wire.ProtocolError):
        wire.unpack(noise)


@settings(deadline=None)
@given(st.data())
def test_a_damaged_frame_raises_nothing_else(data):
    encoder = wire.Encoder()
    header = {"value": encoder.value((torch.arange(6.0).reshape(2, 3), 4))}
    encoder.seal()
    frame = bytearray(wire.pack(header, encoder.storages)[8:])
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = wire.unpack(bytes(frame))
        message.value(message.header.get("value"))
    except wire.ProtocolError:
        pass


VIEW = {"storage": 0, "dtype": "float32", "offset": 0, "size": [2], "stride": [1]}


@pytest.mark.parametrize(
    "change",
    [
        {"size": [3]},
        {"offset": 1},
        {"offset": -1},
        {"stride": [2]},
        {"stride": [-1]},
        {"stride": [1, 1]},
        {"size": [2.0]},
        {"size": [True]},
        {"size": "2"},
        {"size": [1 << 60], "stride": [0]},
        {"size": [1] * 40, "stride": [1] * 40},
        {"storage": 1},
        {"storage": -1},
        {"dtype": "float64"},
        {"dtype": "object"},
        {"dtype": None},
    ],
)
def test_a_view_outside_its_bytes_is_refused(change):
    message = wire.Message({}, [torch.zeros(8, dtype=torch.uint8)])
    assert message.value(["tensor", VIEW]).shape == (2,)
    with pytest.raises(wire.ProtocolError):
        message.value(["tensor", {**VIEW, **change}])


@pytest.mark.parametrize(
    "encoded",
    [
        None,
        [],
        ["plain"],
        ["plain", [1]],
        ["float", "x"],
        ["float", "0x1p99999"],
        ["list", 3],
        ["eval", "1"],
        ["dtype", "object"],
        {"tensor": 1},
        ["tensor", None],
    ],
)
def test_a_value_of_no_kind_is_refused(encoded):
    with pytest.raises(wire.ProtocolError):
        wire.Message({}, []).value(encoded)


def frame_of(text):
    """A safetensors blob with a metadata text of one's own."""
    header = json.dumps({"__metadata__": {"bytewise": text}}).encode()
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, "9" * 10_000])
def test_a_header_that_is_no_object_is_refused(text):
    with pytest.raises(wire.ProtocolError):
        wire.unpack(frame_of(text))


def test_a_closed_connection_is_a_disconnection():
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("<Q", 100) + b"half")
    theirs.close()
    with pytest.raises(wire.Disconnected):
        wire.receive(ours)
    with pytest.raises(wire.Disconnected):
        wire.send(ours, bytes(10 << 20))
    ours.close()


def test_an_announced_size_takes_no_memory():
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("<Q", 1 << 62))
    with pytest.raises(wire.ProtocolError, match="announces"):
        wire.receive(ours)
    ours.close()
    theirs.close()


def test_records():
    sent = Record("IO", read=1, inner=Record("State", m=torch.ones(2)))
    got = through([sent])[0]
    assert (got.kind, got.read, got.inner.kind) == ("IO", 1, "State")
    assert torch.equal(got.inner.m, torch.ones(2))


@pytest.mark.parametrize(
    "content", ["IO", ["IO"], ["I O", {}], [7, {}], ["IO", [1]], ["IO", {"read": ["plain", {}]}]]
)
def test_what_is_no_record(content):
    with pytest.raises(wire.ProtocolError):
        wire.Message({}, []).value(["record", content])


@pytest.mark.parametrize(
    "array",
    [
        numpy.array(3.0),
        numpy.arange(6.0).reshape(2, 3)[:, ::-1],
        numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
        numpy.broadcast_to(numpy.float64(2), (2, 2)),
        numpy.zeros((0, 3)),
    ],
    ids=["no axes", "backwards", "columns first", "read-only", "empty"],
)
def test_arrays_of_every_layout(array, recwarn):
    found = through(array)
    assert type(found) is numpy.ndarray
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert (found == array).all()
    assert not recwarn.list


def test_halves_of_surrogate_pairs_become_question_marks():
    assert through(["a\ud800b", "\udfff", {"\ude00": "😀"}, "\\ud800"]) == [
        "a?b",
        "?",
        {"?": "😀"},
        "\\ud800",
    ]
