"""What a launch stores: kept until it has succeeded, so that one that fails changes nothing.

A kernel that reads what it stores needs its stores done at once; then, and when more is stored than
may be kept, what they overwrite is copied first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import IO

import torch

from mini_triton.execute.tiles.values import Buffer

Tensor = torch.Tensor
Write = Callable[[], None]


class TooManyStores(Exception):
    """More is stored than may be kept, where it cannot be done yet."""


class Stores:
    """The stores of a launch, in order.

    Args:
        written: the tensors that may be stored to.
        most: bytes that may be kept; 0: every store is done at once.
        most_copied: bytes that copies of the tensors may take; more go to a file.
        ahead: whether these stores follow others that are not done yet: then they can only be kept.
    """

    def __init__(
        self, written: Sequence[Buffer], most: int, most_copied: int, ahead: bool = False
    ) -> None:
        self._written = written
        self._most = most
        self._most_copied = most_copied
        self._ahead = ahead
        self._kept: list[Write] = []
        self._bytes = 0
        self._before: Copies | None = None

    def add(self, write: Write, nbytes: int) -> None:
        """Stores by calling `write`, now or later; until then it holds `nbytes`.

        Raises:
            TooManyStores: it is too much to keep and too early to do.
        """
        self._kept.append(write)
        self._bytes += nbytes
        if self._bytes > self._most or not self._most:
            self._do()

    def follow(self, later: Stores) -> None:
        """Takes over stores that come after its own."""
        self._kept += later._kept
        self._bytes += later._bytes
        if self._bytes > self._most:
            self._do()

    def finish(self) -> None:
        """Does what is left: nothing can fail any more."""
        for write in self._kept:
            write()
        self._end()

    def undo(self) -> None:
        """Makes all tensors what they were."""
        if self._before is not None:
            self._before.restore()
        self._end()

    def _end(self) -> None:
        self._kept = []
        if self._before is not None:
            self._before.close()

    def _do(self) -> None:
        if self._ahead:
            raise TooManyStores
        if self._before is None:
            self._before = Copies(self._written, self._most_copied)
        for write in self._kept:
            write()
        self._kept, self._bytes = [], 0


class Copies:
    """What tensors hold; in a temporary file if it is more than `most` bytes."""

    def __init__(self, buffers: Sequence[Buffer], most: int) -> None:
        self._flats = [buffer.flat.view(torch.uint8) for buffer in buffers]
        self._copies: list[Tensor] = []
        self._file: IO[bytes] | None = None
        if sum(flat.numel() for flat in self._flats) > most:
            self._file = _in_file(self._flats)
        if self._file is None:
            self._copies = [flat.clone() for flat in self._flats]

    def restore(self) -> None:
        """Writes all of it back."""
        if self._file is None:
            for flat, copy in zip(self._flats, self._copies, strict=True):
                flat.copy_(copy)
            return
        self._file.seek(0)
        for flat in self._flats:
            self._file.readinto(flat.numpy().data)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Frees what it holds."""
        self._copies = []
        if self._file is not None:
            self._file.close()


def _in_file(flats: Sequence[Tensor]) -> IO[bytes] | None:
    """A temporary file with the bytes of all; None where there is no room for one."""
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115  (`Copies.close` does)
    except OSError:
        return None
    try:
        for flat in flats:
            file.write(flat.numpy().data)
        file.flush()
    except OSError:
        file.close()
        return None
    return file
