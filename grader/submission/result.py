"""What reading a submission comes to: files that may be imported, remarks, and what was wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["missing file", "import error", "refused"]

#: For each line of a file made from a notebook (from line 1 on), the cell and the line it came
#: from, both counted from 1; `None` for the lines that say which cell begins.
LineMap = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True)
class Problem:
    """Something that keeps a file, or the whole submission, from being graded.

    Attributes:
        kind: `missing file`: a declared file is not there. `import error`: it is there, but Python
            could not read it. `refused`: too large, ambiguous, or an archive that is not safe.
        message: for the student: what was wrong, where, and what to do.
        file: the declared file it is about; None if it is about all of them.
    """

    kind: Kind
    message: str
    file: str | None = None


class Refused(Exception):
    """Ends the reading of a file, or of all; carries the `Problem`. Stays within this package."""

    def __init__(self, message: str, kind: Kind = "refused", file: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(kind, message, file)


@dataclass(frozen=True)
class Limits:
    """How much of a submission is read.

    Attributes:
        file_bytes: of a Python file, ten times as much as the longest solution.
        notebook_bytes: of a notebook, which may hold images. Hostile JSON takes 20 times as much
            memory once it is parsed.
        archive_bytes: of a zip as it was handed in.
        total_bytes: of all that is taken from a folder; of all that a zip holds, decompressed.
        entries: files and folders that a folder or a zip may hold.
        ratio: decompressed bytes for each compressed one, of a zip's member above `ratio_from`.
        ratio_from: bytes; small members may be as repetitive as they like.
        depth: folders within folders.
    """

    file_bytes: int = 256 << 10
    notebook_bytes: int = 8 << 20
    archive_bytes: int = 64 << 20
    total_bytes: int = 64 << 20
    entries: int = 2_000
    ratio: int = 200
    ratio_from: int = 1 << 20
    depth: int = 20


@dataclass(frozen=True)
class Submission:
    """A folder with nothing but declared files, and what there is to say about them.

    Attributes:
        folder: where the files are.
        files: the names of those that are there, in the assignment's order. A file with a syntax
            error is there, too, and has a problem.
        notes: for the student: what was changed, passed over or assumed.
        problems: at most one for each declared file, or one about all.
        cells: the line map of each file that was made from a notebook.
    """

    folder: Path
    files: list[str]
    notes: list[str]
    problems: list[Problem]
    cells: dict[str, LineMap] = field(default_factory=dict)

    def problem_of(self, file: str) -> Problem | None:
        """What keeps a declared file from being graded, if anything does."""
        return next((one for one in self.problems if one.file in (file, None)), None)

    def cell_of(self, file: str, line: int) -> tuple[int, int] | None:
        """The cell, and the line in it, that a line of a file came from; None if from no cell."""
        lines = self.cells.get(file, ())
        return lines[line - 1] if 1 <= line <= len(lines) else None

    def locate(self, file: str, line: int) -> str:
        """A place as the student knows it: `cell 4, line 3`, or `rmsnorm.py, line 12`."""
        return place(file, line, self.cells.get(file))


def place(file: str, line: int, lines: LineMap | None) -> str:
    """See `Submission.locate`."""
    came_from = lines[line - 1] if lines and 1 <= line <= len(lines) else None
    return f"cell {came_from[0]}, line {came_from[1]}" if came_from else f"{file}, line {line}"
