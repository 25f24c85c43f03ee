"""A launch as a message, and the record of what it moved.

Everything in a `Launch` can cross a process border: text, numbers and tensors. In grading the
process that holds the student's code sends it, and the judge's device executes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from mini_triton.finding import Finding
from mini_triton.location import Location

if TYPE_CHECKING:
    from mini_triton.hardware.record import HardwareRecord


@dataclass
class Launch:
    """One kernel launch.

    Attributes:
        kernel: its name.
        ttir: the kernel's TTIR text.
        grid: programs along x, y, z.
        args: the arguments that are not compile-time constants, in order; tensors are CPU tensors,
            which the launch changes in place.
        arg_names: their names.
        unwritten: by an argument's position, which of the elements that it reaches (from its first
            to its last, in memory order) nobody has written, bool (n,). The launch changes these in
            place, too, or, if it does not keep track of them, clears the dict.
        read_only: likewise, those that no kernel may write to.
        pointed_to: how many of the last arguments are no parameters of the kernel: tensors whose
            addresses other arguments hold.
        addresses: where tensors lie for the pointers in memory, by argument, if that is not where
            they are: the launch was made in another process, or of other tensors.
        options: launch options that steer code generation (`num_warps`, …).
        source: the kernel as Triton's compiler takes it, an `ASTSource`, of a launch in this
            process; it crosses no border.
    """

    kernel: str
    ttir: str
    grid: tuple[int, int, int]
    args: list[torch.Tensor | int | float | None]
    arg_names: list[str]
    unwritten: dict[int, torch.Tensor] = field(default_factory=dict)
    read_only: dict[int, torch.Tensor] = field(default_factory=dict)
    pointed_to: int = 0
    addresses: dict[int, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    source: Any = field(default=None, repr=False, compare=False)


@dataclass
class Traffic:
    """Elements and bytes that were loaded and stored."""

    loaded: int = 0
    stored: int = 0
    loaded_bytes: int = 0
    stored_bytes: int = 0

    def add(self, kind: str, elements: int, element_size: int) -> None:
        """Adds `elements` of "loaded" or "stored", of `element_size` bytes each."""
        setattr(self, kind, getattr(self, kind) + elements)
        name = f"{kind}_bytes"
        setattr(self, name, getattr(self, name) + elements * element_size)

    def __iadd__(self, other: Traffic) -> Traffic:
        self.loaded += other.loaded
        self.stored += other.stored
        self.loaded_bytes += other.loaded_bytes
        self.stored_bytes += other.stored_bytes
        return self


class Counted:
    """Something with a `total` of traffic, whose four counts are attributes of its own."""

    @property
    def total(self) -> Traffic:
        """All of its traffic."""
        raise NotImplementedError

    @property
    def loaded(self) -> int:
        """Elements loaded."""
        return self.total.loaded

    @property
    def stored(self) -> int:
        """Elements stored."""
        return self.total.stored

    @property
    def loaded_bytes(self) -> int:
        """Bytes loaded."""
        return self.total.loaded_bytes

    @property
    def stored_bytes(self) -> int:
        """Bytes stored."""
        return self.total.stored_bytes


@dataclass
class LaunchRecord(Counted):
    """What one launch moved, per tensor argument and per source line (file, line).

    Attributes:
        kernel: its name.
        grid: programs along each axis.
        tensors: traffic by tensor argument.
        lines: traffic by (file, line).
        largest_tile: elements of the largest tile that the kernel names, whether or not a GPU could
            hold it.
        findings: what the checks that were on have found (`mini_triton.sanitize`).
        hardware: what the modelled GPU makes of it; None if none was asked for.
    """

    kernel: str
    grid: tuple[int, int, int]
    tensors: dict[str, Traffic] = field(default_factory=dict)
    lines: dict[tuple[str, int], Traffic] = field(default_factory=dict)
    largest_tile: int = 1
    findings: list[Finding] = field(default_factory=list)
    hardware: HardwareRecord | None = None

    @property
    def programs(self) -> int:
        """How many programs were launched."""
        return math.prod(self.grid)

    @property
    def total(self) -> Traffic:
        """Over all tensors."""
        total = Traffic()
        for traffic in self.tensors.values():
            total += traffic
        return total

    def add(self, tensor: str, where: Location, kind: str, elements: int, size: int) -> None:
        """Adds traffic of one line on one tensor.

        What a helper moves is charged to the line of the kernel that called it: one helper may
        load all tensors, and its own line would not say which of them is loaded too often.
        """
        self.tensors.setdefault(tensor, Traffic()).add(kind, elements, size)
        line = where.in_kernel
        self.lines.setdefault((line.file, line.line), Traffic()).add(kind, elements, size)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` reads it back."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "largest_tile": self.largest_tile,
            "tensors": {name: vars(traffic).copy() for name, traffic in self.tensors.items()},
            "lines": [
                {"file": file, "line": line, **vars(traffic)}
                for (file, line), traffic in self.lines.items()
            ],
            "findings": [finding.to_dict() for finding in self.findings],
            "hardware": self.hardware and self.hardware.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LaunchRecord:
        """The record that `to_dict` described."""
        x, y, z = data["grid"]
        record = cls(data["kernel"], (x, y, z), largest_tile=data["largest_tile"])
        record.tensors = {name: Traffic(**traffic) for name, traffic in data["tensors"].items()}
        for entry in data["lines"]:
            counts = {key: entry[key] for key in vars(Traffic())}
            record.lines[entry["file"], entry["line"]] = Traffic(**counts)
        record.findings = [Finding.from_dict(finding) for finding in data["findings"]]
        if data.get("hardware") is not None:
            from mini_triton.hardware.record import HardwareRecord

            record.hardware = HardwareRecord.from_dict(data["hardware"])
        return record
