"""What Liger-Kernel assumes of its machine, answered for CPU tensors without a change of its files.

Each entry: what it asks, where, and what it is told here.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import triton
from triton.runtime.autotuner import Autotuner

#: Shown in the report, in this order.
ADAPTATIONS = {
    "infer_device() in ops/dyt": (
        "answers 'cuda': its backward has no branch for CPU tensors and needs a number of "
        "multiprocessors, which is that of the simulated device"
    ),
    "torch.cuda.get_device_properties": (
        "the simulated device's, for those who ask after infer_device() has answered 'cuda'"
    ),
    "Tensor.is_cuda in ops/mlp": "True while its function is applied: it asserts it of its inputs",
    "configurations of triton.autotune": (
        "the first and the last of the list are tried, since each is another compilation"
    ),
    "row programs of a backward pass": (
        "not adapted: on CPU tensors Liger launches one program for all rows where a GPU would "
        "get one for each multiprocessor; the kernel is the same"
    ),
    "gradients written over inputs": (
        "the script passes copies: rope, geglu, swiglu, jsd, cross_entropy overwrite what they get"
    ),
}


def _properties(device: Any = None) -> SimpleNamespace:
    found = triton.runtime.driver.active.utils.get_device_properties(0)
    return SimpleNamespace(multi_processor_count=found["multiprocessor_count"])


def _first_and_last(self: Autotuner, kwargs: dict[str, Any]) -> list[Any]:
    configurations = _prune_configs(self, kwargs)
    return [*configurations[:1], *configurations[1:][-1:]]


_prune_configs = Autotuner.prune_configs


@contextlib.contextmanager
def adapted() -> Iterator[None]:
    """Liger's questions are answered inside; importing `liger_kernel` must be possible."""
    dyt = importlib.import_module("liger_kernel.ops.dyt")
    with (
        mock.patch.object(dyt, "infer_device", return_value="cuda"),
        mock.patch.object(torch.cuda, "get_device_properties", side_effect=_properties),
        mock.patch.object(Autotuner, "prune_configs", _first_and_last),
    ):
        yield


@contextlib.contextmanager
def as_if_on_gpu() -> Iterator[None]:
    """`tensor.is_cuda` is true inside."""
    with mock.patch.object(torch.Tensor, "is_cuda", True, create=True):
        yield
