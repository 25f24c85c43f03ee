"""mini_triton: a Triton backend that runs kernels on CPU tensors and counts the bytes they move.

Installed beside Triton on a machine without a GPU, it makes every `@triton.jit` kernel run on CPU
tensors. Triton finds it through the entry-point group `triton.backends`; nothing has to be
imported. On a machine with a CUDA GPU it stands aside; `TRITON_DEFAULT_BACKEND=mini_triton` asks
for it there.

    with mini_triton.profile() as p:
        kernel[grid](x, y, n, BLOCK=128)
    p.show()                                  # bytes per tensor and per source line

    with mini_triton.profile(check="all"):    # races, unwritten memory, … raise SanitizerError
        kernel[grid](x, y, n, BLOCK=128)

`import mini_triton as triton` works too: every name of `triton` is found here, beside `profile`,
`reset_stats` and `get_stats`.
"""

from __future__ import annotations

from typing import Any

from mini_triton.device import Device, LocalDevice, current_device, set_device
from mini_triton.errors import (
    BadLaunch,
    BadProgram,
    DeviceAssertion,
    KernelError,
    OutOfBounds,
    OverBudget,
    SanitizerError,
    UnsupportedOp,
)
from mini_triton.finding import Finding
from mini_triton.host import HostOp
from mini_triton.launch import Launch, LaunchRecord, Traffic
from mini_triton.location import Location
from mini_triton.profiler import Profile, get_stats, profile, reset_stats
from mini_triton.sanitize.read_only import read_only

__all__ = [
    "BadLaunch",
    "BadProgram",
    "Device",
    "DeviceAssertion",
    "Finding",
    "HostOp",
    "KernelError",
    "Launch",
    "LaunchRecord",
    "LocalDevice",
    "Location",
    "OutOfBounds",
    "OverBudget",
    "Profile",
    "SanitizerError",
    "Traffic",
    "UnsupportedOp",
    "current_device",
    "get_stats",
    "profile",
    "read_only",
    "reset_stats",
    "set_device",
]


def __getattr__(name: str) -> Any:
    """Names of Triton itself (`jit`, `language`, `cdiv`, …), looked up when they are used.

    Not imported at the top: Triton imports this package while it is itself being imported.
    """
    import triton

    try:
        return getattr(triton, name)
    except AttributeError:
        raise AttributeError(f"neither mini_triton nor triton has {name!r}") from None
