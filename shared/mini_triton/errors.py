"""Every error that the simulator raises by intent, one class a cause.

A message reads as a finding's report does: what was wrong, at which line, the facts, what to do.

out of bounds: program (2, 0, 0) loads element 20 of x_ptr, after its last, element 19
  --> copy.py:7, kernel copy_kernel
    7 |     x = tl.load(x_ptr + i)
      |         ^^^^^^^ lane [4] of the tile; 4 of its 8 lanes are outside, up to element 23
  x_ptr: …
  do: …
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from mini_triton.finding import Finding, Place
from mini_triton.location import Location


class KernelError(Exception):
    """Base of all errors of the simulator. `str(error)` is the whole message.

    Attributes:
        title: what its kind is called at the beginning of a message.
        meanwhile: what such an error leaves behind.
        finding: what was wrong, where, and what to do; None of an error that came as text.
        own: whether this process has compiled the kernel. Only then does `str(error)` show lines of
            its source: a program that came from elsewhere may name any file.
    """

    title: ClassVar[str] = "kernel error"
    meanwhile: ClassVar[str] = "no memory was changed"

    def __init__(self, message: str = "", finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding
        self.own = False

    @classmethod
    def at(
        cls,
        where: Location,
        kernel: str,
        message: str,
        says: str = "",
        *,
        verb: str = "",
        also: Sequence[Place] = (),
        facts: Sequence[tuple[str, str]] = (),
        **more: Any,
    ) -> Self:
        """The error at a line.

        Args:
            where: the line.
            kernel: the kernel's name, "" if it is not known here.
            message: what is wrong, in a sentence.
            says: what happens at the line.
            verb: the word of the line that it is about, "" for all of it.
            also: other lines that have a part in it.
            facts: what else to know, each with a label.
            **more: attributes of the `Finding`.
        """
        places = (*((Place.of(where, verb, says),) if where.file else ()), *also)
        facts = (*facts, ("note", cls.meanwhile))
        return cls(message, Finding(cls.title, message, kernel, places, facts=facts, **more))

    def locate(self, where: Location, kernel: str) -> None:
        """Says where it was, if it was raised by who did not know."""
        if self.finding is None or not self.finding.kernel:
            text = str(self.args[0]) if self.args else ""
            self.finding = type(self).at(where, kernel, text).finding

    def report(self, source: Callable[[str, int], str]) -> str:
        """The message, with the lines of source that it is about.

        Args:
            source: see `Finding.report`.
        """
        return super().__str__() if self.finding is None else self.finding.report(source)

    def __str__(self) -> str:
        return self.report(linecache.getline if self.own else _no_source)


def _no_source(file: str, line: int) -> str:
    return ""


class UnsupportedOp(KernelError):
    """The kernel uses an operation that the simulator does not have; nothing was run."""

    title = "not supported"
    meanwhile = "nothing was run"


class BadProgram(KernelError):
    """The TTIR text could not be understood, or is no program that Triton's front end makes."""

    title = "bad program"


class BadLaunch(KernelError):
    """Grid or arguments do not fit the kernel; nothing was run."""

    title = "bad launch"
    meanwhile = "nothing was run"


class OutOfBounds(KernelError):
    """A load or store outside the tensor behind its pointer; no memory was changed."""

    title = "out of bounds"


class DeviceAssertion(KernelError):
    """A `tl.device_assert` that does not hold; no memory was changed."""

    title = "device_assert failed"


class SanitizerError(KernelError):
    """A check has found a fault in a kernel that ran to its end: its results may be right here.

    Attributes:
        findings: what was found (`mini_triton.Finding`).
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = list(findings)


class OverBudget(KernelError):
    """The launch takes more steps or memory than its settings allow; no memory was changed.

    Attributes:
        setting: `NAME=value`, an environment variable that would let it run. It is named only where
            `own` holds: settings of who else executes a launch are not for the kernel's author.
    """

    title = "over budget"
    setting = ""

    def __str__(self) -> str:
        if not (self.setting and self.own):
            return super().__str__()
        return f"{super().__str__()}\n  or: set {self.setting}, for this process"
