"""Where launches are executed: here by default, elsewhere if another device is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mini_triton.execute.machine import Machine
from mini_triton.launch import Launch, LaunchRecord


class Device(Protocol):
    """Executes launches."""

    def launch(self, launch: Launch) -> LaunchRecord:
        """Executes a launch on its tensors, in place, and says what it moved.

        Raises `KernelError`; then no tensor was changed.
        """
        ...


class LocalDevice:
    """Executes launches in this process.

    Args:
        show: takes what kernels print (`tl.device_print`), a line a program.
    """

    def __init__(self, show: Callable[[str], None] = print) -> None:
        self._show = show

    def launch(self, launch: Launch) -> LaunchRecord:
        """See `Device.launch`."""
        machine = Machine(launch, show=self._show)
        machine.run()
        record = LaunchRecord(launch.kernel, launch.grid, largest_tile=machine.program.largest_tile)
        for (where, position, kind, size), elements in machine.counts.items():
            record.add(launch.arg_names[position], where, kind, elements, size)
        return record


_current: Device = LocalDevice()


def set_device(device: Device) -> Device:
    """Makes `device` execute all launches of this process; returns the one before."""
    global _current
    previous, _current = _current, device
    return previous


def current_device() -> Device:
    """The device that executes launches."""
    return _current
