"""How the simulator runs launches: what is checked, what is modelled, on how much memory.

`profile(…)` sets them for a region, `use(…)` for anything else, environment variables for a whole
process. A launch that comes as a message brings none: they are those of the device that runs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from mini_triton.checks import DEFAULT

if TYPE_CHECKING:
    from mini_triton.hardware.gpu import Gpu


@dataclass(frozen=True)
class Settings:
    """What holds for every launch of a region.

    Attributes:
        memory: bytes that a launch may take beyond its tensors; programs run in chunks that fit.
        threads: how many cores a launch may use; None: all that this process may run on. Results
            and counts do not depend on it.
        steps: operations that a launch may run, each counted once for all programs that run it
            together; None: as many as it takes.
        checks: what is looked for in kernels, by name (`checks`).
        on_finding: "raise" makes a `SanitizerError` of what is found, at the end of a profile, or
            at the launch where there is none; "report" leaves it in the records.
        hardware: the GPU that launches are modelled on, too; None: none.
        tf32: whether products of float32 that ask for tf32, Triton's default, round their factors
            to it, as hardware does; False keeps them whole, to tell rounding from mistakes.
    """

    memory: int = 256 * 1024 * 1024
    threads: int | None = None
    steps: int | None = None
    checks: tuple[str, ...] = DEFAULT
    on_finding: Literal["raise", "report"] = "raise"
    hardware: Gpu | None = None
    tf32: bool = True


def _from_environment() -> Settings:
    """`MINI_TRITON_MEMORY` (bytes), `MINI_TRITON_THREADS`, `…_STEPS`, `…_TF32` (0 or 1)."""
    given: dict[str, Any] = {}
    for name in ("memory", "threads", "steps"):
        text = os.environ.get(f"MINI_TRITON_{name.upper()}")
        if text is not None:
            if not text.isdecimal() or int(text) == 0:
                raise ValueError(f"MINI_TRITON_{name.upper()}={text!r} is no positive integer")
            given[name] = int(text)
    tf32 = os.environ.get("MINI_TRITON_TF32")
    if tf32 is not None:
        if tf32 not in ("0", "1"):
            raise ValueError(f"MINI_TRITON_TF32={tf32!r} is neither 0 nor 1")
        given["tf32"] = tf32 == "1"
    return Settings(**given)


_in_force = _from_environment()


def current() -> Settings:
    """The settings in force."""
    return _in_force


@contextmanager
def use(**changes: Any) -> Iterator[Settings]:
    """Settings for a region: `with use(threads=1): …`."""
    global _in_force
    before = _in_force
    _in_force = replace(before, **changes)
    try:
        yield _in_force
    finally:
        _in_force = before
