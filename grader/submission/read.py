"""Reads a submission, whatever it is, into a folder that holds the declared files and no others."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from grader.manifest import Assignment
from grader.submission import notebook
from grader.submission.archive import is_archive, open_archive
from grader.submission.entries import Entry, choose, choose_notebook, explain_missing
from grader.submission.folder import list_folder, read_file
from grader.submission.result import Limits, LineMap, Problem, Refused, Submission
from grader.submission.syntax import check_syntax
from grader.submission.text import decode, shown

_DEFAULTS = Limits()


def read(path: Path, assignment: Assignment, into: Path, limits: Limits = _DEFAULTS) -> Submission:
    """Takes the declared files out of a submission.

    Args:
        path: a folder, a zip, a `.py` file or a notebook. A folder or a zip may hold a notebook in
            place of a declared file.
        assignment: says which files are declared.
        into: a folder to write them to; it is made if need be, and must be empty.
        limits: how much is read.

    Returns:
        The files, notes and problems. Whatever a student can do wrong is among the problems.

    Raises:
        ValueError: `into` is not empty. This, and an `into` that cannot be written to, are the
            caller's fault; nothing in a submission raises.
    """
    into.mkdir(parents=True, exist_ok=True)
    if any(into.iterdir()):
        raise ValueError(f"{into} is not empty; a submission is read into a folder of its own")
    intake = _Intake(assignment.files, into, limits)
    try:
        intake.take(path)
    except Refused as refused:
        intake.problems.append(refused.problem)
    return Submission(into, intake.files, intake.notes, intake.problems, intake.cells)


@dataclass
class _Intake:
    """One submission while it is read; the attributes are those of `Submission`."""

    declared: Sequence[str]
    into: Path
    limits: Limits
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    cells: dict[str, LineMap] = field(default_factory=dict)
    bytes_read: int = 0
    books: dict[PurePosixPath, list[notebook.Cell]] = field(default_factory=dict)

    def take(self, path: Path) -> None:
        """Finds out what the submission is, and takes what is declared."""
        name = shown(path.name)
        try:
            mode = path.lstat().st_mode
        except (OSError, ValueError):
            raise Refused(f"there is no {shown(str(path))}", "missing file") from None
        if stat.S_ISLNK(mode):
            raise Refused(f"{name} is a symbolic link; give the file or folder that it leads to")
        if stat.S_ISDIR(mode):
            self._take_all(list_folder(path, self.limits))
        elif not stat.S_ISREG(mode):
            raise Refused(f"{name} is neither a file nor a folder")
        elif path.suffix.casefold() in (".py", ".ipynb"):
            self._take_all([self._alone(path)])
        elif is_archive(path):
            with open_archive(path, self.limits) as entries:
                self._take_all(entries)
        else:
            raise Refused(f"{name} is not a folder, a zip, a .py file or a notebook (.ipynb)")

    def _alone(self, path: Path) -> Entry:
        """A Python file by itself stands for the declared one, if that is one, under any name."""
        called = PurePosixPath(path.name)
        if called.suffix.casefold() == ".ipynb":
            called = called.with_suffix(".ipynb")
        elif len(self.declared) == 1 and called.name != self.declared[0]:
            self.notes.append(f"{shown(path.name)} was taken as {self.declared[0]}")
            called = PurePosixPath(self.declared[0])
        return Entry(called, partial(read_file, path, shown(path.name)))

    def _take_all(self, entries: Sequence[Entry]) -> None:
        for file in self.declared:
            try:
                self._take_file(entries, file)
            except Refused as refused:
                self.problems.append(Problem(refused.problem.kind, refused.problem.message, file))

    def _take_file(self, entries: Sequence[Entry], file: str) -> None:
        found = choose(entries, file)
        if found:
            self._from_python(found, file, alone=len(entries) == 1)
            for entry in entries:
                if entry.path.stem == found.path.stem and entry.path.suffix == ".ipynb":
                    self.notes.append(f"{entry} was passed over, as there is a {file}")
            return
        book = choose_notebook(entries, file)
        if book is None:
            raise Refused(explain_missing(entries, file, self.declared), "missing file")
        self._from_notebook(book, file)

    def _from_python(self, entry: Entry, file: str, *, alone: bool) -> None:
        source, notes = decode(self._bytes(entry, self.limits.file_bytes), file)
        if len(entry.path.parts) > 1 and not alone:
            self.notes.append(f"{file} was taken from {shown(str(entry.path.parent))}/")
        self.notes += notes
        self._keep(file, source, check_syntax(source, file))

    def _from_notebook(self, entry: Entry, file: str) -> None:
        if entry.path not in self.books:
            try:
                data = self._bytes(entry, self.limits.notebook_bytes)
            except Refused as refused:
                hint = "if it holds images, clear its outputs and save it again"
                raise Refused(f"{refused.problem.message}; {hint}") from None
            text, _ = decode(data, str(entry))  # line ends of the JSON are nobody's concern
            self.books[entry.path] = notebook.read_cells(text, str(entry))
        made = notebook.extract(self.books[entry.path], file, self.declared)
        if len(made.source) > self.limits.file_bytes:
            raise Refused(
                f"the cells for {file} have more than {self.limits.file_bytes:,} characters, which "
                "is the most there may be"
            )
        self.notes += [f"{file} was made from cells of {entry}", *made.notes]
        self.cells[file] = made.lines
        self._keep(file, made.source, made.problem)

    def _bytes(self, entry: Entry, limit: int) -> bytes:
        data = entry.read(limit)
        self.bytes_read += len(data)
        if self.bytes_read > self.limits.total_bytes:
            raise Refused(
                f"the declared files have more than {self.limits.total_bytes:,} bytes together, "
                "which is the most there may be"
            )
        return data

    def _keep(self, file: str, source: str, problem: Problem | None) -> None:
        """Writes a file. One that Python cannot read is worth keeping, too: it can be looked at."""
        # Half a surrogate pair, as JSON can spell it, is no character; the problem says where.
        data = source.encode("utf-8", errors="replace")
        (self.into / file).write_bytes(data)
        self.files.append(file)
        if problem:
            self.problems.append(problem)
