"""A pytest plug-in that lets Triton's own tests run on a machine without a GPU, unaltered.

`pytest -p tests.fidelity.triton_plugin` with `TRITON_DEFAULT_BACKEND=mini_triton`, or with
`TRITON_INTERPRET=1` for Triton's interpreter. Every adaptation stands in `ADAPTATIONS` with its
reason; each of them changes what the tests *find out about the machine*, none what they check.
"""

from __future__ import annotations

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
from triton.compiler import CompiledKernel

SM90 = GPUTarget("cuda", 90, 32)
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


def _cuda_tensors_on_cpu(patch: pytest.MonkeyPatch) -> None:
    """Tests that name the device "cuda" themselves get CPU tensors: there is no other memory."""

    def redirected(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if "device" in kwargs:
                kwargs["device"] = _on_cpu(kwargs["device"])
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
    for name in FACTORIES:
        patch.setattr(torch, name, redirected(getattr(torch, name)))


def _capability_of_sm90(patch: pytest.MonkeyPatch) -> None:
    """`torch.cuda` has no device to ask; the simulator compiles for sm_90: that is the answer."""
    patch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    patch.setattr(torch.cuda, "get_device_name", lambda *_: PROPERTIES.name)
    patch.setattr(torch.cuda, "get_device_properties", lambda *_: PROPERTIES)
    patch.setattr(torch.cuda, "synchronize", lambda *_: None)
    patch.setattr(torch.cuda, "current_device", lambda: 0)


def _target_is_cuda(patch: pytest.MonkeyPatch) -> None:
    """`is_cuda()` is true of the simulator, whose language is that of CUDA for sm_90."""
    current = testing.get_current_target

    def target() -> GPUTarget | None:
        found = current()
        return SM90 if found is not None and found.backend == "mini_triton" else found

    patch.setattr(testing, "get_current_target", target)


class _Assembly(dict[str, Any]):
    """A kernel's `asm`; what lies below TTIR comes from Triton's real compile for sm_90."""

    def __init__(self, kernel: CompiledKernel, known: dict[str, Any]) -> None:
        super().__init__(known)
        self._kernel = kernel

    def __getitem__(self, key: str) -> Any:
        if key == "ttir" and key in self and isinstance(super().__getitem__(key), bytes):
            return super().__getitem__(key).decode()
        return super().__getitem__(key)

    def __missing__(self, key: str) -> Any:
        metadata = self._kernel.metadata
        options = {
            name: getattr(metadata, name)
            for name in (
                "num_warps",
                "num_ctas",
                "num_stages",
                "maxnreg",
                "enable_fp_fusion",
                "debug",
            )
        }
        real = triton.compile(self._kernel.src, target=SM90, options=options)
        value = real.asm[key]
        self.update({k: v for k, v in real.asm.items() if k not in self})
        return value


def _assembly_from_a_real_compile(patch: pytest.MonkeyPatch) -> None:
    """Tests that look at TTGIR or PTX see Triton's own, compiled for sm_90 without a GPU.

    So that a test runs to its end and compares its values too; of the simulator these lines say
    nothing.
    """
    original = CompiledKernel.__init__

    def init(self: CompiledKernel, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self.metadata.target.backend == "mini_triton":
            self.asm = _Assembly(self, self.asm)

    patch.setattr(CompiledKernel, "__init__", init)


ADAPTATIONS = (
    _cuda_tensors_on_cpu,
    _capability_of_sm90,
    _target_is_cuda,
    _assembly_from_a_real_compile,
)

_patch = pytest.MonkeyPatch()


def pytest_configure(config: pytest.Config) -> None:
    """Adapts before a test's file is imported: decorators ask for the target too."""
    for adapt in ADAPTATIONS:
        if os.environ.get("TRITON_INTERPRET") == "1" and adapt is not _cuda_tensors_on_cpu:
            continue
        adapt(_patch)


def pytest_unconfigure() -> None:
    """Takes everything back."""
    _patch.undo()
