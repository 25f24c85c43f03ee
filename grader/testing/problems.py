"""What can go wrong in a student's code, as exceptions that carry what to show.

Every kind has its verdict. None of them carries a harness traceback: a student sees frames of the
submitted files only, with the file, the line and its text.
"""

from __future__ import annotations

import unittest
from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """One line of a submitted file that was running when something went wrong.

    Attributes:
        file: the file's name relative to the submission.
        line: the line's number, from 1.
        function: the function it belongs to; `<module>` at top level.
        text: the line itself, stripped; empty if it could not be read.
    """

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}"
        if self.function != "<module>":
            where += f" in {self.function}"
        return f"{where}\n    {self.text}" if self.text else where


class StudentProblem(Exception):
    """Base of everything that a submission can do wrong; `str()` of it is shown to the student.

    Attributes:
        kind: one word that names the class on the wire between processes.
    """

    kind = "problem"

    def __init__(self, message: str, frames: tuple[Frame, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.frames = tuple(frames)

    def __str__(self) -> str:
        return "\n".join([*(f"  {frame}" for frame in self.frames), self.message])


class StudentError(StudentProblem):
    """Student code raised an exception: `Type: text`, or a kernel's error as it is."""

    kind = "error"


class Misuse(StudentProblem, AssertionError):
    """Student code ran, but not as the assignment asks: no such function, inputs changed, …."""

    kind = "misuse"


class KernelFault(StudentProblem, AssertionError):
    """A kernel has a fault that right results may hide: a race, a load of unwritten memory, …."""

    kind = "fault"


class NotStarted(StudentProblem, unittest.SkipTest):
    """The code to be written still is a stub that raises `NotImplementedError`.

    A `unittest.SkipTest`, so that unittest and pytest report the test as skipped, with the stub's
    own text as the reason.
    """

    kind = "not started"

    def __str__(self) -> str:
        return f"not started: {self.message}" if self.message else "not started"


class ImportFailed(StudentProblem):
    """A submitted file raised while it was imported."""

    kind = "import"


class MissingFile(StudentProblem):
    """A declared file was not submitted."""

    kind = "missing"


class Crashed(StudentProblem):
    """Student code ended its process, or tried to (`sys.exit`)."""

    kind = "crashed"


class TimedOut(StudentProblem):
    """Student code has not come to an end. Said by who watches the clock, never by a worker."""

    kind = "timed out"


#: Kinds as they travel on the wire.
KINDS: dict[str, type[StudentProblem]] = {
    kind.kind: kind
    for kind in (StudentError, Misuse, NotStarted, ImportFailed, MissingFile, Crashed)
}
