"""Triton's real compile: resources, errors, and that a kernel is compiled once."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.hardware import GPUS, compiled

from tests.mini_triton.hardware.test_model import modelled, scale_kernel


class Keep:
    def __init__(self):
        self.launches = []

    def launch(self, launch):
        self.launches.append(launch)
        return mini_triton.LaunchRecord(launch.kernel, launch.grid)


@pytest.fixture
def kept():
    keep = Keep()
    before = mini_triton.set_device(keep)
    yield keep.launches
    mini_triton.set_device(before)


def test_options_are_those_of_the_launch(kept):
    x = torch.empty(4096)
    for warps in (4, 8, 4):
        scale_kernel[(1,)](x, x, 4096, BLOCK=4096, num_warps=warps)
    few, many, again = (compiled.compiled(launch, GPUS["H100"]) for launch in kept)
    assert (few.num_warps, many.num_warps) == (4, 8)
    assert few.registers > many.registers
    assert few.spills == few.shared == 0
    assert "sm_90" in few.ptx
    assert again is few  # of the same specialisation: compiled once


def test_other_capabilities(kept):
    x = torch.empty(64)
    scale_kernel[(1,)](x, x, 64, BLOCK=64)
    assert ".target sm_80" in compiled.compiled(kept[0], GPUS["A100 80GB"]).ptx


def test_without_a_source_nothing_is_compiled(kept):
    x = torch.empty(64)
    scale_kernel[(1,)](x, x, 64, BLOCK=64)
    kept[0].source = None
    assert compiled.compiled(kept[0], GPUS["H100"]) is None


@triton.jit
def _spilling(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x - tl.sum(x))


def test_spills_are_words_of_a_thread(kept):
    x = torch.empty(4096)
    _spilling[(1,)](x, x, BLOCK=4096, num_warps=1, maxnreg=32)
    found = compiled.compiled(kept[0], GPUS["H100"])
    assert found.registers <= 32
    assert found.spills > 32


def test_what_the_compiler_objects_to_is_the_answer(monkeypatch, capsys):
    def failing(*_args, **_options):
        print("the whole program")
        raise RuntimeError("PTXAS error: no")

    monkeypatch.setattr(triton, "compile", failing)
    compiled._compiled.cache_clear()
    x, y = torch.ones(64), torch.empty(64)
    hardware = modelled(lambda: _spilling[(1,)](x, y, BLOCK=64)).hardware
    compiled._compiled.cache_clear()
    assert capsys.readouterr().out == ""
    assert hardware.resources.error == "PTXAS error: no"
    assert not hardware.fits
    assert hardware.sectors() > 0  # modelled all the same
