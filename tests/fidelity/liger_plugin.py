"""A pytest plug-in that lets Liger-Kernel's own tests run on CPU tensors, unaltered.

`pytest -p tests.fidelity.liger_plugin`, with `liger_kernel` importable. What Liger asks of its
machine is answered as for our own cases (`liger_cases.adaptations`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from tests.fidelity.liger_cases.adaptations import adapted, as_if_on_gpu


def pytest_configure(config: pytest.Config) -> None:
    """Their mark, and functions of `torch.<device>` that modules call when they are imported."""
    config.addinivalue_line("markers", "flaky(reruns, reruns_delay): of pytest-rerunfailures")
    torch.cpu.is_bf16_supported = lambda: True  # type: ignore[attr-defined]
    memory = SimpleNamespace(total_memory=8 << 30)
    torch.cpu.get_device_properties = lambda *_: memory  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Answers for each test."""
    gpu = as_if_on_gpu() if item.path.name == "test_mlp.py" else contextlib.nullcontext()
    with adapted(), gpu:
        return (yield)
