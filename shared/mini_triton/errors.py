"""Every error that the simulator raises by intent, one class a cause.

A message says what was wrong, where (kernel, file, line, tensor, index, program id) and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Location:
    """A place in the kernel's Python source.

    Attributes:
        file: its path.
        line: its line, from 1.
        caller: if it is in a function that the kernel calls, the line of the kernel that does.
    """

    file: str
    line: int
    caller: Location | None = None

    @property
    def in_kernel(self) -> Location:
        """The line of the kernel itself: what this place costs is charged there."""
        return self.caller or self

    def __str__(self) -> str:
        if not self.file:
            return "unknown location"
        called = f" (called at {self.caller})" if self.caller else ""
        return f"{self.file}:{self.line}{called}"


UNKNOWN = Location("", 0)


class KernelError(Exception):
    """Base of all errors of the simulator. `str(error)` is the whole message."""


class UnsupportedOp(KernelError):
    """The kernel uses an operation that the simulator does not have; nothing was run."""


class BadProgram(KernelError):
    """The TTIR text could not be understood, or is no program that Triton's front end makes."""


class BadLaunch(KernelError):
    """Grid or arguments do not fit the kernel; nothing was run."""


class OutOfBounds(KernelError):
    """A load or store outside the tensor behind its pointer; no memory was changed."""


class DeviceAssertion(KernelError):
    """A `tl.device_assert` that does not hold; no memory was changed."""


class SanitizerError(KernelError):
    """A check has found a fault in a kernel that ran to its end: its results may be right here.

    Attributes:
        findings: what was found (`mini_triton.Finding`).
    """

    def __init__(self, message: str, findings: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.findings = list(findings)


class OverBudget(KernelError):
    """The launch takes more steps or memory than its settings allow; no memory was changed."""
