"""A pytest plug-in that lets Triton's own tests run on a machine without a GPU, unaltered.

`pytest -p tests.fidelity.triton_plugin` with `TRITON_DEFAULT_BACKEND=mini_triton`, or with
`TRITON_INTERPRET=1` for Triton's interpreter. Every adaptation stands in `ADAPTATIONS` with its
reason; each of them changes what the tests *find out about the machine*, none what they check.
`--capability` is the compute capability that the tests see: many are for some GPUs only.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
import triton._internal_testing as testing
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDAOptions
from triton.compiler import CompiledKernel

#: What a test may ask of the GPU: those of an H100.
PROPERTIES = SimpleNamespace(multi_processor_count=132, total_memory=80 << 30, name="H100")
#: Functions that make tensors; tests give them `device="cuda"`.
FACTORIES = [
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "full",
    "linspace",
    "ones",
    "ones_like",
    "rand",
    "randint",
    "randn",
    "randn_like",
    "tensor",
    "zeros",
    "zeros_like",
]


def _on_cpu(device: Any) -> Any:
    return "cpu" if str(device).startswith("cuda") else device


Capability = tuple[int, int]


def _cuda_tensors_on_cpu(patch: pytest.MonkeyPatch, capability: Capability) -> None:
    """Tests that name the device "cuda" themselves get CPU tensors: there is no other memory."""

    def redirected(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if "device" in kwargs:
                kwargs["device"] = _on_cpu(kwargs["device"])
            kwargs.pop("pin_memory", None)  # all memory is the device's
            return function(*args, **kwargs)

        return call

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if "device" in kwargs:
            kwargs["device"] = _on_cpu(kwargs["device"])
        args = tuple(_on_cpu(a) if isinstance(a, (str, torch.device)) else a for a in args)
        return original_to(self, *args, **kwargs)

    original_to = torch.Tensor.to
    patch.setattr(torch.Tensor, "to", to)
    patch.setattr(torch.Tensor, "cuda", lambda self, *_args, **_kwargs: self)
    patch.setattr(torch.cuda, "synchronize", lambda *_: None)
    patch.setattr(torch.cuda, "device", lambda *_: contextlib.nullcontext())
    for name in FACTORIES:
        patch.setattr(torch, name, redirected(getattr(torch, name)))


def _capability(patch: pytest.MonkeyPatch, capability: Capability) -> None:
    """`torch.cuda` has no device to ask."""
    patch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    patch.setattr(torch.cuda, "get_device_name", lambda *_: PROPERTIES.name)
    patch.setattr(torch.cuda, "get_device_properties", lambda *_: PROPERTIES)
    patch.setattr(torch.cuda, "current_device", lambda: 0)
    patch.setattr(torch.cpu, "current_device", lambda: 0)


def _target_is_cuda(patch: pytest.MonkeyPatch, capability: Capability) -> None:
    """`is_cuda()` is true of the simulator, whose language is that of CUDA."""
    current = testing.get_current_target

    def target() -> GPUTarget | None:
        found = current()
        simulated = found is not None and found.backend == "mini_triton"
        return _cuda(capability) if simulated else found

    patch.setattr(testing, "get_current_target", target)


def _cuda(capability: Capability) -> GPUTarget:
    return GPUTarget("cuda", 10 * capability[0] + capability[1], 32)


class _Assembly(dict[str, Any]):
    """A kernel's `asm`; what lies below TTIR comes from Triton's real compile for a GPU."""

    def __init__(self, kernel: CompiledKernel, target: GPUTarget) -> None:
        super().__init__(kernel.asm)
        self._kernel = kernel
        self._target = target

    def __missing__(self, key: str) -> Any:
        metadata = self._kernel.metadata._asdict()
        options = {  # out of JSON, where tuples are lists
            name: tuple(metadata[name]) if isinstance(metadata[name], list) else metadata[name]
            for name in CUDAOptions.__dataclass_fields__
            if name in metadata
        }
        if options["arch"] == "sm90":  # the simulator's own default, and not what was asked for
            del options["arch"]
        real = triton.compile(self._kernel.src, target=self._target, options=options)
        value = real.asm[key]
        self.update({k: v for k, v in real.asm.items() if k not in self})
        return value


def _assembly_from_a_real_compile(patch: pytest.MonkeyPatch, capability: Capability) -> None:
    """Tests that look at TTGIR or PTX see Triton's own, compiled for a GPU without one.

    So that a test runs to its end and compares its values too; of the simulator these lines say
    nothing.
    """
    original = CompiledKernel.__init__

    def init(self: CompiledKernel, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self.metadata.target.backend == "mini_triton":
            self.asm = _Assembly(self, _cuda(capability))

    patch.setattr(CompiledKernel, "__init__", init)


class _Cublas:
    """`C = A · Bᵀ` as the reference of matmul tests."""

    def matmul(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_((a.float() @ b.float().T).to(out.dtype))


#: Of the 256 parts in which a test of conversions goes through all 2³² floats, those that are run.
PARTS = (0, 85, 170, 255)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is too large for a CPU, or not there, in the tests' modules.

    Tests that compare with cuBLAS compare with torch in float32. Tests that convert every float
    there is convert a 64th of them.
    """
    for module in {id(m): m for m in (getattr(item, "module", None) for item in items)}.values():
        if getattr(module, "cublas", module) is None:
            module.cublas = _Cublas()  # type: ignore[union-attr]
        if hasattr(module, "downcast_test"):
            module.downcast_test = _some_parts(module.downcast_test)


def _some_parts(whole: Callable[..., None]) -> Callable[..., None]:
    def some(*args: Any, **kwargs: Any) -> None:
        if args[-1] in PARTS:
            whole(*args, **kwargs)

    return some


ADAPTATIONS = (
    _cuda_tensors_on_cpu,
    _capability,
    _target_is_cuda,
    _assembly_from_a_real_compile,
)

_patch = pytest.MonkeyPatch()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option above."""
    parser.addoption("--capability", default="9.0")


def pytest_configure(config: pytest.Config) -> None:
    """Adapts before a test's file is imported: decorators ask for the target too."""
    major, minor = map(int, config.getoption("--capability").split("."))
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    for adapt in (_cuda_tensors_on_cpu, _capability) if interpreted else ADAPTATIONS:
        adapt(_patch, (major, minor))


def pytest_unconfigure() -> None:
    """Takes everything back."""
    _patch.undo()
