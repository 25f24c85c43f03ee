"""The driver: what Triton asks of a device at run time, answered for CPU tensors.

Triton's `JITFunction.run` compiles a kernel once per specialization and then calls
`launcher_cls(src, metadata)(gx, gy, gz, stream, function, …, *args)`. Here that call becomes a
`Launch` (a message: TTIR, grid, arguments) handed to whatever device is set (`device.set_device`).
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes as _outside_dispatch_modes
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from mini_triton.backend import rejections
from mini_triton.backend.parameters import flattener
from mini_triton.backend.pointed_to import by_address, pointed_to
from mini_triton.backend.target import TARGET
from mini_triton.backend.versions import stand_alone_if_asked_for
from mini_triton.device import current_device
from mini_triton.errors import BadLaunch, KernelError
from mini_triton.ir.relocate import relocated
from mini_triton.launch import Launch
from mini_triton.profiler import profile, record
from mini_triton.sanitize import fresh, read_only

stand_alone_if_asked_for()

#: A thread's registers, in place of what code generation would tell. Not 0, since programs divide
#: by it for an occupancy.
_REGISTERS = 32
#: A launch never fails for shared memory here; the limit is the H100's and H200's opt-in maximum.
_PROPERTIES = {
    "max_shared_mem": 232_448,
    "multiprocessor_count": 132,
    "max_num_regs": 65_536,
    "warpSize": 32,
    "sm_clock_rate": 1_980_000,
    "mem_clock_rate": 3_201_000,
    "mem_bus_width": 6_144,
}

#: Launch options that the compiler for a GPU needs to make the program that would run there.
_OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "launch_cooperative_grid",
    "launch_pdl",
    "debug",
    "sanitize_overflow",
)


class _Binaries:
    """Loads "binaries": the last stage's output is TTIR text, so loading is keeping it."""

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[str, str, int, int, int]:
        """Returns (module, function, registers, spills, max threads); the function is the TTIR.

        The module is not None, by which Triton would know that it has to load the kernel.
        """
        return name, kernel.decode(), _REGISTERS, 0, 1024

    def unload_module(self, module: object) -> None:
        """Nothing was loaded, so nothing is freed."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """The properties of the emulated device."""
        return dict(_PROPERTIES)


class Launcher:
    """Turns Triton's launch call into a `Launch` message for the current device."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self._name: str = metadata.name
        self._kernel = getattr(src, "fn", None)  # a file of TTIR has none
        self._ttir: str | None = None
        self._by_address = False
        self._flatten = flattener({str(name): kind for name, kind in src.signature.items()})
        self._source = src
        self._options = {
            name: value for name in _OPTIONS if (value := getattr(metadata, name, None)) is not None
        }

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: str,
        packed_metadata: object,
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        *args: Any,
    ) -> None:
        """Executes one launch; returns when its memory is written."""
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if self._ttir is None:
            self._ttir = relocated(function, self._kernel) if self._kernel else function
            self._by_address = by_address(self._ttir)
        names, values = self._flatten(args)
        values = [_tensor_behind(value) for value in values]
        behind = pointed_to(names, values) if self._by_address else {}
        launch = Launch(
            kernel=self._name,
            ttir=self._ttir,
            grid=self._integers(grid_x, grid_y, grid_z),
            args=[*values, *behind.values()],
            arg_names=[*names, *behind],
            pointed_to=len(behind),
            options=self._options,
            source=self._source,
        )
        with _outside_dispatch_modes():
            launch.unwritten = fresh.unwritten(launch.args)
            launch.read_only = read_only.declared(launch.args)
            try:
                executed = current_device().launch(launch)
            except KernelError as error:
                error.own = True
                # Without the frames of what ran the kernel: that is not what went wrong.
                raise error.with_traceback(None) from error.__cause__
            fresh.settle(launch.args, launch.unwritten)
            record(executed)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _integers(self, *grid: Any) -> tuple[int, int, int]:
        """The grid, of what Triton's launcher in C takes for an integer and nothing else."""
        try:
            x, y, z = map(operator.index, grid)
        except TypeError as error:
            raise TypeError(
                f"kernel {self._name}, grid {grid}: {error}; divide with triton.cdiv or //"
            ) from None
        return x, y, z


def _tensor_behind(value: Any) -> Any:
    """The tensor that `triton.reinterpret` wrapped; its new dtype is in the kernel's signature."""
    return value.base if type(value).__name__ == "TensorWrapper" else value


class MiniTritonDriver(DriverBase):
    """Answers Triton's runtime for one emulated device, number 0, whose tensors are on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        rejections.install()
        self.utils = _Binaries()
        self.launcher_cls = Launcher

    @classmethod
    def is_active(cls) -> bool:
        """True when asked for by name, and on every machine without a GPU of its own."""
        asked = os.environ.get("TRITON_DEFAULT_BACKEND")
        if asked:
            return asked == "mini_triton"
        return not torch.cuda.is_available()

    def map_python_to_cpp_type(self, ty: str) -> str:
        """C++ type of a kernel argument; never asked for, since nothing is compiled to C++."""
        raise NotImplementedError(f"mini_triton compiles no C++ launcher (asked for {ty})")

    def get_current_target(self) -> GPUTarget:
        """The emulated target."""
        return TARGET

    def get_active_torch_device(self) -> torch.device:
        """Tensors live on the CPU."""
        return torch.device("cpu")

    def get_current_device(self) -> int:
        """The one device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device; any other number is an error."""
        if device != 0:
            raise BadLaunch(f"there is one simulated device, number 0; device {device} was asked")

    def get_current_stream(self, device: int | None = None) -> int:
        """Launches are synchronous: one stream."""
        return 0

    def get_device_interface(self) -> Any:
        """The part of `torch.cuda` that `triton.testing.do_bench` uses, with host clocks."""
        return SimpleNamespace(Event=_HostEvent, synchronize=lambda: None, current_device=lambda: 0)

    def get_benchmarker(self) -> Callable[..., Any]:
        """What `triton.autotune` ranks configurations by: the bytes that they move."""
        return _benchmark

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """There is no L2 cache to flush: an empty buffer."""
        return torch.empty(0, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Nothing to flush."""


class _HostEvent:
    """`torch.cuda.Event` over the host's clock (launches are synchronous)."""

    def __init__(self, enable_timing: bool = True) -> None:
        self._at = 0.0

    def record(self) -> None:
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        """A launch has ended when it returns."""

    def elapsed_time(self, end: _HostEvent) -> float:
        """Milliseconds from this event to `end`."""
        return (end._at - self._at) * 1e3


#: What the emulated memory moves in a millisecond: two transfers a clock, over the bus's width.
_BYTES_PER_MILLISECOND = 2 * _PROPERTIES["mem_clock_rate"] * _PROPERTIES["mem_bus_width"] // 8


def _benchmark(
    kernel_call: Callable[[], Any], *, quantiles: list[float] | None = None, **_: Any
) -> Any:
    """Milliseconds that the bytes of one run take at the emulated memory's bandwidth.

    Not the host's clock: which configuration is chosen, and so what is counted and in which order
    sums are made, must not depend on how busy the machine is. Of equals Triton takes the first.
    """
    with profile(host=False, on_finding="report") as trial:
        kernel_call()
    moved = trial.total.loaded_bytes + trial.total.stored_bytes
    milliseconds = moved / _BYTES_PER_MILLISECOND
    return milliseconds if quantiles is None else [milliseconds] * len(quantiles)
