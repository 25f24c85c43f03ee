"""A place in a kernel's Python source."""

from __future__ import annotations

from dataclasses import dataclass


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
