"""Half a core and 0.75 GB, as Gradescope's default container has: by the kernel's control groups.

Root can make a group on most machines, of either version. Where none can be made there is no box,
and what a process took is measured all the same (`grader.gradescope.meter`).
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_MOUNT = Path("/sys/fs/cgroup")
_PERIOD = 100_000  # µs: the kernel's default
_WAITS, _WAIT = 50, 0.1


@dataclass(frozen=True)
class Limits:
    """What a container may use.

    Attributes:
        cpus: cores; half a one gets 50 ms in every 100.
        memory_bytes: resident, of all processes together; beyond it the kernel kills.
        seconds: of wall time, until the container is ended.
    """

    cpus: float = 0.5
    memory_bytes: int = 750_000_000
    seconds: int = 600


class Box:
    """Control groups, made for one process and its descendants; a context manager.

    Args:
        folders: the groups: one if the machine has control groups of version 2, two of version 1.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders

    @classmethod
    def make(cls, limits: Limits, mount: Path = _MOUNT) -> Box | None:
        """A box; None if this machine or user cannot have one."""
        name = f"bytewise-{os.getpid()}-{time.monotonic_ns()}"
        quota = round(limits.cpus * _PERIOD)
        version_2 = {
            mount: {
                "memory.max": str(limits.memory_bytes),
                "memory.swap.max": "0",
                "cpu.max": f"{quota} {_PERIOD}",
            }
        }
        version_1 = {
            mount / "memory": {"memory.limit_in_bytes": str(limits.memory_bytes)},
            mount / "cpu": {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": str(quota)},
        }
        for version in (version_2, version_1):
            made: list[Path] = []
            try:
                for parent, settings in version.items():
                    folder = parent / name
                    folder.mkdir()
                    made.append(folder)
                    for key, value in settings.items():
                        # Opened for writing only: a file that is not there must not be made.
                        descriptor = os.open(folder / key, os.O_WRONLY)
                        try:
                            os.write(descriptor, value.encode())
                        finally:
                            os.close(descriptor)
                return cls(tuple(made))
            except OSError:
                for folder in made:
                    with contextlib.suppress(OSError):
                        folder.rmdir()
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def command(self, command: list[str]) -> list[str]:
        """The command that puts itself into the box and then becomes the given one."""
        groups = [str(folder / "cgroup.procs") for folder in self._folders]
        enter = 'n=$1; shift; for i in $(seq "$n"); do echo $$ >"$1" || exit 125; shift; done'
        return ["/bin/sh", "-c", f'{enter}; exec "$@"', "box", str(len(groups)), *groups, *command]

    def killed(self) -> int:
        """How many processes the kernel has killed for want of memory."""
        for folder in self._folders:
            for file in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    for line in (folder / file).read_text().splitlines():
                        if line.startswith("oom_kill "):
                            return int(line.split()[1])
        return 0

    def close(self) -> None:
        """Removes the groups; what is left in them is killed."""
        for folder in self._folders:
            for _ in range(_WAITS):
                with contextlib.suppress(OSError):
                    for pid in (folder / "cgroup.procs").read_text().split():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(int(pid), 9)
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(_WAIT)
