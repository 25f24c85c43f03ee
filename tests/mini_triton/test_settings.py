"""Settings hold for their region, also when it ends with an error."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mini_triton import settings


def test_a_region_has_its_own_settings() -> None:
    before = settings.current()
    with settings.use(threads=1) as inner:
        assert settings.current() is inner
        assert inner.threads == 1
        assert inner.memory == before.memory
    assert settings.current() is before


def test_an_error_ends_the_region() -> None:
    before = settings.current()
    with pytest.raises(KeyError), settings.use(memory=1):
        raise KeyError
    assert settings.current() is before


def test_the_environment_sets_them_for_a_process() -> None:
    code = "from mini_triton import settings; print(settings.current().threads)"
    env = {"MINI_TRITON_THREADS": "3"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "3\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"MINI_TRITON_THREADS": "many"},
        capture_output=True,
        text=True,
    )
    assert "MINI_TRITON_THREADS='many' is no positive integer" in done.stderr


def test_rounding_to_tf32_is_switched_by_0_and_1(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.current().tf32
    monkeypatch.setenv("MINI_TRITON_TF32", "0")
    assert not settings._from_environment().tf32
    monkeypatch.setenv("MINI_TRITON_TF32", "no")
    with pytest.raises(ValueError, match="MINI_TRITON_TF32='no' is neither 0 nor 1"):
        settings._from_environment()
