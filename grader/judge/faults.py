"""What can end a test, and is no exception of student code."""

from __future__ import annotations

from grader.testing.problems import Crashed, Frame


class WorkerGone(Crashed):
    """A process of the student's ended in the middle of a call.

    Attributes:
        pid: its process id, if it is a rank's; 0 for the one of calls without ranks.
    """

    def __init__(self, message: str, frames: tuple[Frame, ...] = (), pid: int = 0) -> None:
        super().__init__(message, frames)
        self.pid = pid


class SimulatorFault(Exception):
    """The simulator itself failed on a kernel; the submission is not to blame."""
