"""What student code prints, from one process or several: the beginning, fit to be shown."""

from __future__ import annotations

import contextlib
import os

from grader.judge.text import clean

#: How much is kept, in bytes.
MOST_PRINTED = 8_000


class Printed:
    """Collects what is printed. Lines of a rank begin with `rank 2: `."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._flooded = False
        self._begun: dict[int, bytes] = {}

    def take(self, data: bytes, rank: int | None = None) -> None:
        """Keeps the beginning; a flood is read and dropped.

        Args:
            data: what was printed.
            rank: by which rank; None if by none.
        """
        if rank is not None:
            *lines, rest = (self._begun.get(rank, b"") + data).split(b"\n")
            self._begun[rank] = rest[: MOST_PRINTED + 1]
            data = b"".join(b"rank %d: %s\n" % (rank, line) for line in lines)
        room = MOST_PRINTED - len(self._kept)
        self._kept += data[:room]
        self._flooded = self._flooded or len(data) > room

    def drain(self, output: int, rank: int | None = None) -> None:
        """Reads what is left in the pipe of a worker that has ended."""
        os.set_blocking(output, False)
        with contextlib.suppress(BlockingIOError):
            while data := os.read(output, 1 << 16):
                self.take(data, rank)
        if rank is not None and self._begun.pop(rank, b""):
            self.take(b"\n", rank)

    def text(self) -> str:
        """What was printed."""
        text = clean(self._kept.decode("utf-8", errors="replace"), MOST_PRINTED)
        return text + "\n… (more was printed; it is not kept)" if self._flooded else text
