"""Lists a folder, and reads files from it, without following any symbolic link."""

from __future__ import annotations

import os
import stat
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from grader.submission.entries import Entry, is_litter
from grader.submission.result import Limits, Refused
from grader.submission.text import shown

_CHUNK = 1 << 16


def list_folder(folder: Path, limits: Limits) -> list[Entry]:
    """Every file below a folder that is not litter, by path.

    Raises:
        Refused: there are too many, they lie too deep, or a folder cannot be read.
    """
    entries: list[Entry] = []
    count = 0
    for here, folders, files in os.walk(folder, followlinks=False, onerror=_unreadable):
        below = PurePosixPath(Path(here).relative_to(folder).as_posix())
        if len(below.parts) > limits.depth:
            raise Refused(f"folders lie more than {limits.depth} deep: {shown(str(below))}")
        folders[:] = sorted(name for name in folders if not is_litter(name))
        count += len(folders) + len(files)
        if count > limits.entries:
            raise Refused(
                f"the folder holds more than {limits.entries} files; hand in just those that the "
                "assignment names"
            )
        for name in [*files, *folders]:
            path = Path(here) / name
            link = path.is_symlink()
            if not is_litter(name) and (link or name in files):
                entries.append(Entry(below / name, partial(read_file, path, shown(name)), link))
    return sorted(entries, key=lambda entry: entry.path)


def _unreadable(error: OSError) -> None:
    raise Refused(f"the folder {shown(str(error.filename))} cannot be read: {error.strerror}")


def read_file(path: Path, name: str, limit: int) -> bytes:
    """The bytes of an ordinary file.

    Raises:
        Refused: it is a symbolic link, a pipe or a device; it cannot be opened; or it has more than
            `limit` bytes.
    """
    try:
        # A link is not followed even if it took the file's place a moment ago, and a pipe that
        # nobody writes to does not hold us up.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused(f"{name} is not an ordinary file")
        return read_bounded(stream, limit, name)


def read_bounded(stream: IO[bytes], limit: int, name: str) -> bytes:
    """All of a stream, in small steps, so that no more than `limit` bytes are ever held.

    Raises:
        Refused: there is more.
    """
    held = bytearray()
    while chunk := stream.read(min(_CHUNK, limit + 1 - len(held))):
        held += chunk
        if len(held) > limit:
            raise Refused(f"{name} has more than {limit:,} bytes, which is the most there may be")
    return bytes(held)
