"""The wire between the judge and a student's process: bytes of data, nothing that can be executed.

A message is a frame: eight bytes of length, then one safetensors blob. Its metadata hold a JSON
header, its tensors the raw bytes of the storages that the header's views refer to. Sizes, strides
and shared storage survive, so an expanded or non-contiguous tensor arrives as such. Whatever comes
in is checked before it is used; `ProtocolError` is the only way that a bad frame shows.
"""

from __future__ import annotations

import json
import math
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy
import safetensors
import safetensors.torch
import torch

from grader.testing.record import Record

#: Bounds on what is accepted: bytes of a frame and of its header, elements and axes of a tensor,
#: depth of nested containers. Reading a frame takes three times its size for a moment: as it comes,
#: put together, and as tensors. Judge and student may have to share a container of 750 MB.
MAX_FRAME = 64 << 20
MAX_HEADER = 8 << 20
MAX_ELEMENTS = 1 << 28
MAX_AXES = 16
MAX_DEPTH = 20
_LONGEST_NAME = 60

#: An escape in JSON of half of a surrogate pair. Alone it is no character.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_LENGTH = struct.Struct("<Q")
_KEY = "bytewise"
#: Storages are cut at multiples of this many bytes, so that every dtype's offsets stay whole.
_ALIGNMENT = 16
_DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.complex128,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
    )
}


class ProtocolError(Exception):
    """What came in is no message; the text says why."""


class TooLarge(Exception):
    """A message would exceed the bounds of the wire; the text says by how much."""


class Disconnected(Exception):
    """The other process is gone."""


class Foreign:
    """Stands for a value that does not travel, e.g. an instance of a student's own class.

    Its type has the name of the value's type, so that "y is a Liar" can be said.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


@dataclass
class Message:
    """A header (plain JSON data) and the storages that its encoded values refer to.

    Attributes:
        header: the header; encoded values in it are read with `value`.
        storages: bytes, uint8, one-dimensional.
    """

    header: dict[str, Any]
    storages: list[torch.Tensor]

    def value(self, encoded: Any, depth: int = 0) -> Any:
        """The value that an encoded part of the header stands for.

        Raises:
            ProtocolError: it stands for none.
        """
        if depth > MAX_DEPTH:
            raise ProtocolError("values are nested too deeply")
        if not isinstance(encoded, list) or len(encoded) != 2 or not isinstance(encoded[0], str):
            raise ProtocolError("a value is not a pair of kind and content")
        kind, content = encoded
        if kind == "plain" and (content is None or type(content) in (bool, int, str)):
            return content
        if kind == "float" and isinstance(content, str):
            try:
                return float.fromhex(content)
            except (ValueError, OverflowError) as error:
                raise ProtocolError("a number cannot be read") from error
        if kind in ("tensor", "array") and isinstance(content, dict):
            tensor = self._tensor(content)
            return tensor if kind == "tensor" else _as_array(tensor)
        if kind in ("tuple", "list") and isinstance(content, list):
            items = [self.value(item, depth + 1) for item in content]
            return tuple(items) if kind == "tuple" else items
        if kind == "dict" and isinstance(content, dict):
            return {key: self.value(item, depth + 1) for key, item in content.items()}
        if kind == "record" and isinstance(content, list) and len(content) == 2:
            name, fields = content
            if not (isinstance(name, str) and name.isidentifier() and isinstance(fields, dict)):
                raise ProtocolError("a record has no name or no fields")
            values = {key: self.value(item, depth + 1) for key, item in fields.items()}
            return Record(name[:_LONGEST_NAME], **values)
        if kind == "dtype" and content in _DTYPES:
            return _DTYPES[content]
        if kind == "foreign" and isinstance(content, str):
            name = re.sub(r"\W", "_", content)[:_LONGEST_NAME] or "object"
            return type(name, (Foreign,), {})()
        raise ProtocolError(f"a value of kind {kind[:20]!r} cannot be read")

    def _tensor(self, view: dict[str, Any]) -> torch.Tensor:
        """A view of a storage; nothing outside the storage can be reached."""
        dtype = _DTYPES.get(str(view.get("dtype")))
        number, offset = view.get("storage"), view.get("offset")
        size, stride = view.get("size"), view.get("stride")
        if dtype is None or not (_natural(number) and _natural(offset)):
            raise ProtocolError("a tensor has no dtype, storage or offset")
        if not (_naturals(size) and _naturals(stride) and len(size) == len(stride)):
            raise ProtocolError("a tensor has no sizes or strides")
        if number >= len(self.storages):
            raise ProtocolError("a tensor refers to a storage that was not sent")
        if len(size) > MAX_AXES or math.prod(size) > MAX_ELEMENTS:
            raise ProtocolError(f"a tensor of shape {tuple(size)[:MAX_AXES]} is too large")
        storage = self.storages[number]
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if math.prod(size) and (last + 1) * dtype.itemsize > storage.numel():
            raise ProtocolError("a tensor reaches beyond the bytes that were sent")
        if not math.prod(size):
            return torch.empty_strided(size, stride, dtype=dtype)
        return torch.empty(0, dtype=dtype).set_(storage.untyped_storage(), offset, size, stride)


def _as_array(tensor: torch.Tensor) -> Any:
    try:
        return tensor.numpy()
    except TypeError as error:
        raise ProtocolError(f"numpy has no {tensor.dtype}") from error


def _natural(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 1 << 62


def _naturals(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(map(_natural, values))


class Encoder:
    """Collects values for one message; tensors that share storage keep sharing it.

    Attributes:
        storages: the bytes of each storage that are sent, as views of the tensors' own memory;
            complete after `seal`.
    """

    def __init__(self) -> None:
        self._views: list[tuple[dict[str, Any], torch.Tensor]] = []
        self.storages: list[torch.Tensor] = []

    def value(self, value: Any, depth: int = 0) -> list[Any]:
        """Encodes a value; what does not travel becomes its type's name."""
        if depth > MAX_DEPTH:
            raise TooLarge(f"containers are nested more than {MAX_DEPTH} deep")
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return ["plain", value]
        if kind is float:
            return ["float", value.hex()]
        if kind is torch.Tensor and _travels(value):
            return ["tensor", self._view(value)]
        if kind is numpy.ndarray and str(value.dtype) in _DTYPES:
            # A copy, as torch shares no memory with arrays that are read-only or run backwards.
            return ["array", self._view(torch.from_numpy(numpy.array(value, order="C")))]
        if isinstance(value, numpy.generic) and str(value.dtype) in _DTYPES:
            return self.value(value.item(), depth)
        if kind in (tuple, list):
            return [kind.__name__, [self.value(item, depth + 1) for item in value]]
        if kind is dict and all(type(key) is str for key in value):
            return ["dict", {key: self.value(item, depth + 1) for key, item in value.items()}]
        if kind is Record:
            fields = {key: self.value(item, depth + 1) for key, item in value.fields.items()}
            return ["record", [value.kind, fields]]
        if kind is torch.dtype and str(value).removeprefix("torch.") in _DTYPES:
            return ["dtype", str(value).removeprefix("torch.")]
        return ["foreign", kind.__name__]

    def _view(self, tensor: torch.Tensor) -> dict[str, Any]:
        view: dict[str, Any] = {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "size": list(tensor.shape),
            "stride": list(tensor.stride()),
        }
        self._views.append((view, tensor.detach()))
        return view

    def seal(self) -> None:
        """Cuts the bytes that the collected tensors span out of their storages."""
        spans: dict[int, tuple[int, int]] = {}
        for _, tensor in self._views:
            key = tensor.untyped_storage().data_ptr()
            low, high = _byte_span(tensor)
            old_low, old_high = spans.get(key, (low, high))
            spans[key] = (min(low, old_low), max(high, old_high))
        numbers: dict[int, int] = {}
        for view, tensor in self._views:
            key = tensor.untyped_storage().data_ptr()
            low, high = spans[key]
            low -= low % _ALIGNMENT
            if key not in numbers:
                numbers[key] = len(self.storages)
                flat = torch.empty(0, dtype=torch.uint8)
                flat.set_(tensor.untyped_storage(), low, (high - low,), (1,))
                self.storages.append(flat)
            view["storage"] = numbers[key]
            view["offset"] = (_byte_span(tensor)[0] - low) // tensor.element_size()
        self._views.clear()


def _travels(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and str(tensor.dtype).removeprefix("torch.") in _DTYPES
        and not (tensor.is_conj() or tensor.is_neg())
    )


def _byte_span(tensor: torch.Tensor) -> tuple[int, int]:
    """First byte of a tensor in its storage, and the one after its last."""
    start = int(tensor.storage_offset()) * tensor.element_size()
    if not tensor.numel():
        return start, start
    axes = zip(tensor.shape, tensor.stride(), strict=True)
    reach = sum((int(size) - 1) * int(step) for size, step in axes)
    return start, start + (reach + 1) * tensor.element_size()


def pack(
    header: dict[str, Any], storages: Sequence[torch.Tensor] = (), most: int | None = None
) -> bytes:
    """A frame.

    Raises:
        TooLarge: it would exceed `most` bytes; None is `MAX_FRAME`.
    """
    most = MAX_FRAME if most is None else most
    size = sum(storage.numel() for storage in storages)
    if size > most - MAX_HEADER:
        raise TooLarge(f"{size:,} bytes of tensors; at most {most - MAX_HEADER:,} travel")
    text = json.dumps(header)
    if len(text) > MAX_HEADER // 2:
        raise TooLarge(f"a header of {len(text):,} bytes")
    tensors = {str(number): storage for number, storage in enumerate(storages)}
    blob = safetensors.torch.save(tensors, metadata={_KEY: text})
    return _LENGTH.pack(len(blob)) + blob


def unpack(blob: bytes) -> Message:
    """The message in a frame's blob.

    Raises:
        ProtocolError: it holds none.
    """
    if len(blob) < 8 or _LENGTH.unpack_from(blob)[0] > MAX_HEADER:
        raise ProtocolError("a frame has no header")
    try:
        parts = dict(safetensors.deserialize(blob))
        outer = json.loads(blob[8 : 8 + _LENGTH.unpack_from(blob)[0]])
        header = _text_header(outer["__metadata__"][_KEY])
    except (safetensors.SafetensorError, ValueError, LookupError, TypeError, RecursionError) as bad:
        raise ProtocolError(f"a frame cannot be read: {type(bad).__name__}") from bad
    if not isinstance(header, dict):
        raise ProtocolError("a header is not an object")
    storages = []
    for number in range(len(parts)):
        part = parts.get(str(number))
        if part is None or part["dtype"] != "U8" or len(part["shape"]) != 1:
            raise ProtocolError("a frame's storages are not plain bytes")
        storages.append(_bytes_tensor(part["data"]))
    return Message(header, storages)


def _text_header(text: str) -> Any:
    """What JSON says; whatever in it is no text, and could not be printed or reported, as `?`."""
    header = json.loads(text)
    if _SURROGATE.search(text):
        header = json.loads(json.dumps(header, ensure_ascii=False).encode(errors="replace"))
    return header


def _bytes_tensor(data: bytearray) -> torch.Tensor:
    if not data:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(data, dtype=torch.uint8)


def send(connection: socket.socket, frame: bytes) -> None:
    """Sends a frame.

    Raises:
        Disconnected: nobody is left to read it.
    """
    try:
        connection.sendall(frame)
    except OSError as error:
        raise Disconnected(str(error)) from error


def receive(connection: socket.socket, most: int | None = None) -> Message:
    """Waits for a message of at most so many bytes; None is `MAX_FRAME`.

    Raises:
        Disconnected: the other side is gone.
        ProtocolError: it sent something else.
    """
    most = MAX_FRAME if most is None else most
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > most:
        raise ProtocolError(f"a frame announces {length:,} bytes; at most {most:,} are read")
    return unpack(_exactly(connection, length))


def _exactly(connection: socket.socket, count: int) -> bytes:
    """The next `count` bytes; memory is taken as they arrive, not as they are announced."""
    parts, left = [], count
    while left:
        try:
            part = connection.recv(min(left, 1 << 20))
        except OSError as error:
            raise Disconnected(str(error)) from error
        if not part:
            raise Disconnected("the connection was closed")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
