"""Where launches are executed: here by default, elsewhere if another device is set."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from mini_triton import settings
from mini_triton.hardware.model import Model
from mini_triton.launch import Launch, LaunchRecord
from mini_triton.sanitize.run import run


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
        checks: what is looked for in kernels, by name (`checks`); None: what the settings
            in force say.
    """

    def __init__(
        self, show: Callable[[str], None] = print, checks: Collection[str] | None = None
    ) -> None:
        self._show = show
        self._checks = checks

    def launch(self, launch: Launch) -> LaunchRecord:
        """See `Device.launch`."""
        gpu = settings.current().hardware
        model = Model(launch, gpu) if gpu is not None else None
        checks = settings.current().checks if self._checks is None else self._checks
        machine, findings = run(launch, self._show, checks, model.observers if model else ())
        record = LaunchRecord(
            launch.kernel,
            launch.grid,
            largest_tile=machine.program.largest_tile,
            findings=findings,
        )
        for (where, position, kind, size), elements in machine.counts.items():
            record.add(launch.arg_names[position], where, kind, elements, size)
        if model is not None:
            record.hardware = model.record()
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
