"""Versions of Triton: asked for by name, the simulator is the only active driver."""

from __future__ import annotations

import pytest
import triton
import triton.backends.nvidia.driver as nvidia
from mini_triton.backend.versions import stand_alone_if_asked_for


@pytest.fixture
def an_active_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia.CudaDriver, "is_active", staticmethod(lambda: True))


@pytest.mark.usefixtures("an_active_gpu")
@pytest.mark.parametrize(
    ("version", "asked", "active"),
    [
        ("3.6.0", "mini_triton", False),
        ("3.6.0", "nvidia", True),
        ("3.6.0", None, True),
        ("3.7.1", "mini_triton", True),  # which chooses by name itself
    ],
)
def test_the_gpu_stands_aside_on_3_6(
    monkeypatch: pytest.MonkeyPatch, version: str, asked: str | None, active: bool
) -> None:
    monkeypatch.setattr(triton, "__version__", version)
    if asked is None:
        monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    else:
        monkeypatch.setenv("TRITON_DEFAULT_BACKEND", asked)
    stand_alone_if_asked_for()
    assert nvidia.CudaDriver.is_active() is active
