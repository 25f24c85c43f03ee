"""How collectives cross the wire between the judge and the process of a rank.

A rank sends `collective` and gets `done` or `refused`. Which rank it is, only its connection says.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from grader.judge import wire
from grader.judge.text import clean
from grader.testing.collective import (
    DTYPES,
    LONGEST_LABEL,
    MOST_BYTES,
    OPS,
    Array,
    Collective,
)
from grader.testing.problems import Frame


def most_bytes(n: int) -> int:
    """The largest frame from each of n ranks: all of them together have to fit into the judge."""
    return max(wire.MAX_FRAME // n, 2 * wire.MAX_HEADER)


def ask(connection: socket.socket, wanted: Collective) -> Array:
    """In a worker: has the judge execute a collective.

    Returns:
        What this rank gets.

    Raises:
        ValueError: the arrays of the group do not fit.
        Disconnected: the judge is gone.
    """
    encoder = wire.Encoder()
    header = {
        "op": "collective",
        "collective": wanted.op,
        "members": list(wanted.members),
        "array": encoder.value(wanted.array),
        "algo": wanted.algo,
        "label": wanted.label,
        "ranks": list(wanted.ranks),
        "frames": [[f.file, f.line, f.function, f.text] for f in wanted.frames],
    }
    encoder.seal()
    wire.send(connection, wire.pack(header, encoder.storages))
    reply = wire.receive(connection)
    if reply.header["op"] == "refused":
        raise ValueError(reply.header["message"])
    array: Array = reply.value(reply.header["array"])
    return array


def reply_frame(reply: Array | ValueError) -> bytes:
    """In the judge: the answer to a collective."""
    if isinstance(reply, ValueError):
        return wire.pack({"op": "refused", "message": str(reply)})
    encoder = wire.Encoder()
    header = {"op": "done", "array": encoder.value(reply)}
    encoder.seal()
    return wire.pack(header, encoder.storages)


def checked_collective(
    message: wire.Message, rank: int, n: int, frames: Callable[[Any], tuple[Frame, ...]]
) -> Collective:
    """In the judge: the collective in a message from a rank's process.

    Args:
        message: the message.
        rank: whose it is.
        n: how many ranks there are.
        frames: takes the frames out of their part of the header.

    Raises:
        ProtocolError: it is none.
    """
    header = message.header
    op, algo, label = (header.get(key) for key in ("collective", "algo", "label"))
    members, ranks = header.get("members"), header.get("ranks")
    if op not in OPS:
        raise wire.ProtocolError("a collective has no known name")
    if not _are_ranks(members, n):
        raise wire.ProtocolError("a collective's group is no list of ranks")
    if rank not in members:
        raise wire.ProtocolError("a collective is of a group that the rank is not in")
    if not _are_ranks(ranks, n) or bool(ranks) != (op == "group"):
        raise wire.ProtocolError("a group that is made has no list of ranks")
    if op == "group" and len(members) < n:
        raise wire.ProtocolError("a group is not made by all ranks")
    if not all(isinstance(text, str) and len(text) <= LONGEST_LABEL for text in (algo, label)):
        raise wire.ProtocolError("a collective has no label or no algorithm, or one too long")
    array = message.value(header.get("array"))
    if type(array) is not np.ndarray or array.ndim != 1 or str(array.dtype) not in DTYPES:
        raise wire.ProtocolError("a collective has no 1-D array of numbers")
    if array.nbytes > MOST_BYTES:
        raise wire.ProtocolError(f"a collective's array has {array.nbytes:,} bytes")
    return Collective(
        op,
        tuple(members),
        array.copy(),  # it may be an expanded view of few bytes, or share them
        clean(algo, LONGEST_LABEL),
        clean(label, LONGEST_LABEL),
        frames(header.get("frames")),
        tuple(ranks),
    )


def _are_ranks(numbers: Any, n: int) -> TypeGuard[list[int]]:
    """Whether it is a list of some of n ranks, each once."""
    return (
        isinstance(numbers, list)
        and all(type(number) is int and 0 <= number < n for number in numbers)
        and len(set(numbers)) == len(numbers)
    )
