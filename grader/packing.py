"""Zips that are the same whenever their content is: for Gradescope, for students, to hand in.

Members are sorted, bear one fixed time, and are either 0644 or 0755, so that two builds of the same
tree can be compared byte by byte, on any machine.
"""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

#: The earliest time that a zip can say.
_TIME = (1980, 1, 1, 0, 0, 0)
#: What tools leave behind; names that begin with a dot are left out, too.
_LITTER = (".egg-info", "__pycache__", ".pyc", ".pyo", ".orig", ".rej", "~")


class PackingError(Exception):
    """Something that a zip needs is not there, or not as it must be; the message says what."""


class Parcel:
    """The content of a zip before it is written: a name for each file, its bytes and its mode.

    Args:
        folder: the one folder in the zip that everything is put below; "" for the zip's root.
    """

    def __init__(self, folder: str = "") -> None:
        self._folder = PurePosixPath(folder)
        self._files: dict[PurePosixPath, tuple[bytes, bool]] = {}

    @property
    def names(self) -> list[str]:
        """Where the files are going to be, below the parcel's folder; sorted."""
        return sorted(name.as_posix() for name in self._files)

    def add(self, name: str, data: bytes | str, *, executable: bool = False) -> None:
        """Puts a file into the parcel.

        Raises:
            PackingError: there is one of that name, or the name leads elsewhere.
        """
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise PackingError(f"{name!r} is no name for a file in a zip; give a relative path")
        if path in self._files:
            raise PackingError(f"{name} would be in the zip twice")
        self._files[path] = (data.encode() if isinstance(data, str) else data, executable)

    def add_file(self, name: str, source: Path) -> None:
        """Puts a file from the disk into the parcel; it stays executable if it is.

        Raises:
            PackingError: there is no such file, or it is a link.
        """
        try:
            mode = source.lstat().st_mode
        except FileNotFoundError:
            raise PackingError(f"there is no {source}, which belongs into the zip") from None
        if not stat.S_ISREG(mode):
            raise PackingError(f"{source} is not a plain file; links and devices are not packed")
        self.add(name, source.read_bytes(), executable=bool(mode & stat.S_IXUSR))

    def add_tree(self, name: str, source: Path, leave_out: Collection[str] = ()) -> None:
        """Puts a folder with all that is below it into the parcel, except what tools left behind.

        Args:
            name: what it is called in the zip.
            source: the folder.
            leave_out: files and folders not to take, as paths relative to `source`.

        Raises:
            PackingError: there is no such folder, nothing in it, or a link.
        """
        found = list(_walk(source, set(leave_out)))
        if not found:
            raise PackingError(f"there is nothing in {source}, which belongs into the zip")
        for file in found:
            self.add_file(f"{name}/{file.relative_to(source).as_posix()}", file)

    def write(self, to: Path) -> Path:
        """Writes the zip, all of it or nothing, in place of what is there.

        Returns:
            `to`.
        """
        to.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=to.parent, prefix=f".{to.name}.")
        try:
            with (
                os.fdopen(handle, "wb") as file,
                zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                for path in sorted(self._files):
                    archive.writestr(self._member(path), self._files[path][0], compresslevel=9)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(to)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return to

    def _member(self, path: PurePosixPath) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo((self._folder / path).as_posix(), _TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.create_system = 3  # Unix: else the mode below is not looked at
        mode = 0o755 if self._files[path][1] else 0o644
        info.external_attr = (stat.S_IFREG | mode) << 16
        return info


def _walk(folder: Path, leave_out: set[str]) -> Iterator[Path]:
    if not folder.is_dir():
        raise PackingError(f"there is no folder {folder}, which belongs into the zip")
    pending = [folder]
    while pending:
        for entry in sorted(pending.pop().iterdir()):
            relative = entry.relative_to(folder).as_posix()
            if relative in leave_out or entry.name.startswith(".") or entry.name.endswith(_LITTER):
                continue
            if entry.is_dir() and not entry.is_symlink():
                pending.append(entry)
            else:
                yield entry


def without_packages(pyproject: str, packages: Collection[str]) -> str:
    """`pyproject.toml` for a tree that does not carry some packages of the repository.

    Args:
        pyproject: the repository's, with one package a line.
        packages: those left out, as `grader.authoring`.

    Raises:
        PackingError: a package is not listed, or not on a line of its own.
    """
    lines = pyproject.splitlines(keepends=True)
    for package in packages:
        entry = f'"{package}",'
        matching = [line for line in lines if line.strip() == entry]
        if len(matching) != 1:
            raise PackingError(
                f"pyproject.toml has {len(matching)} lines {entry!s} under [tool.setuptools]; "
                "list each package once, on a line of its own"
            )
        lines.remove(matching[0])
        lines = [line for line in lines if not line.startswith(f'"{package}" = ')]  # package data
    return "".join(lines)
