"""Lists a zip, and reads members of it, believing nothing that it says.

Nothing is ever extracted: a member is decompressed into memory, in small steps, and only if it is
to be graded. So no name in a zip can lead anywhere. Archives that try are refused all the same, as
are those that a program handing in homework does not make; a student who hears why can mend it.
"""

from __future__ import annotations

import mmap
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from grader.submission.entries import Entry, is_litter
from grader.submission.folder import read_bounded
from grader.submission.result import Limits, Refused
from grader.submission.text import shown

#: Begins the record of each member in a zip's central directory.
_MEMBER = b"PK\x01\x02"
#: `zipfile` decompresses these in bounded steps. The others it does not: 4 KiB of bzip2 are enough
#: for gigabytes, and an LZMA header alone asks for as much memory as it likes.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

#: All that `zipfile` and `zlib` are known to raise for archives that are damaged or forged.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    UnicodeError,
    ValueError,
)

_AGAIN = "make the zip anew, from the files that the assignment names"


def is_archive(path: Path) -> bool:
    """Whether a file is called a zip, or begins like one.

    Raises:
        Refused: it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return path.suffix.casefold() == ".zip" or stream.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise Refused(f"{shown(path.name)} cannot be read: {error.strerror}") from None


@contextmanager
def open_archive(path: Path, limits: Limits) -> Iterator[list[Entry]]:
    """The files in a zip that are not litter, by path; they can be read while it is open.

    Raises:
        Refused: it is too large, damaged, encrypted or a bomb; or has members that lead out of it,
            are links or other special files, or have the same name.
    """
    try:
        size = path.stat().st_size
        if size > limits.archive_bytes:
            most = f"the most there may be are {limits.archive_bytes:,}"
            raise Refused(f"the zip has {size:,} bytes; {most}")
        if _members(path, limits.entries) > limits.entries:
            raise Refused(f"the zip holds more than {limits.entries} files; {_AGAIN}")
        archive = zipfile.ZipFile(path)
    except _DAMAGE as error:
        raise Refused(f"the zip is damaged, or is no zip: {_said(error)}; {_AGAIN}") from None
    with archive:
        members = archive.infolist()
        _check_all(members, limits)
        entries = [
            Entry(PurePosixPath(member.filename), partial(_read, archive, member))
            for member in members
            if not member.is_dir() and not any(map(is_litter, PurePosixPath(member.filename).parts))
        ]
        yield sorted(entries, key=lambda entry: entry.path)


def _members(path: Path, enough: int) -> int:
    """Counts members before `zipfile` does, which makes an object of each of perhaps millions.

    May count some that are none, as of a zip within the zip; stops soon after `enough`.
    """
    if path.stat().st_size == 0:
        raise zipfile.BadZipFile("it is empty")
    count, at = 0, -1
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        while count <= enough and (at := data.find(_MEMBER, at + 1)) >= 0:
            count += 1
    return count


def _check_all(members: list[zipfile.ZipInfo], limits: Limits) -> None:
    """Refuses an archive for what any of its members says of itself."""
    for member in members:
        _check_name(member)
        mode = member.external_attr >> 16
        name = shown(member.filename)
        if stat.S_ISLNK(mode):
            raise Refused(f"{name} in the zip is a symbolic link; {_AGAIN}")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise Refused(f"{name} in the zip is not an ordinary file; {_AGAIN}")
        if member.flag_bits & 0x1:
            raise Refused(f"{name} in the zip is encrypted; make a zip without a password")
        if member.compress_type not in _METHODS:
            method = member.compress_type
            raise Refused(f"{name} in the zip is compressed by method {method}; use deflate, 8")
        if (
            member.file_size > limits.ratio_from
            and member.file_size > limits.ratio * member.compress_size
        ):
            raise Refused(
                f"{name} in the zip would grow from {member.compress_size:,} to "
                f"{member.file_size:,} bytes, as only a zip bomb does"
            )
    total = sum(member.file_size for member in members)
    if total > limits.total_bytes:
        raise Refused(
            f"the zip would unpack to {total:,} bytes; the most there may be are "
            f"{limits.total_bytes:,}: hand in just the files that the assignment names"
        )
    for path, count in Counter(PurePosixPath(member.filename) for member in members).items():
        if count > 1:
            raise Refused(f"{shown(str(path))} is in the zip {count} times; {_AGAIN}")


def _check_name(member: zipfile.ZipInfo) -> None:
    """Refuses names that lead elsewhere on some system; `zipfile` itself hides what follows NUL."""
    name = member.orig_filename
    what = ""
    if "\0" in name:
        what = "has a NUL character in its name"
    elif "\\" in name:
        what = "has a backslash in its name"
    elif name.startswith("/") or re.match(r"[A-Za-z]:", name):
        what = "has an absolute path"
    elif ".." in PurePosixPath(name).parts:
        what = "leads out of the zip"
    elif not PurePosixPath(name).parts:
        what = "has no name"
    if what:
        raise Refused(f"{shown(name)!r} in the zip {what}; {_AGAIN}")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    name = shown(member.filename)
    try:
        with archive.open(member) as stream:
            return read_bounded(stream, limit, name)
    except _DAMAGE as error:
        raise Refused(f"{name} in the zip is damaged: {_said(error)}; {_AGAIN}") from None


def _said(error: Exception) -> str:
    return shown(str(error)) or type(error).__name__
