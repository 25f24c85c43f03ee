"""TTIR of real kernels, with the arguments that they were launched with: what is mutated."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

import mini_triton
import torch
import triton
import triton.language as tl
from mini_triton.ir.types import SIGNLESS, TORCH_DTYPE

from tests.kernels.examples import examples
from tests.mini_triton.comparing import integers, normal
from tests.mini_triton.execute import test_random_programs
from tests.mini_triton.hostile.guarded import Argument, Tensor

_ELEMENT = {dtype: name for name, dtype in TORCH_DTYPE.items() if name != "index"}


@dataclass(frozen=True)
class Seed:
    """A program and arguments that it runs on."""

    name: str
    ttir: str
    arguments: tuple[Argument, ...]


@triton.jit
def _lower(a_value, a_index, b_value, b_index):
    takes_b = b_value < a_value
    return tl.where(takes_b, b_value, a_value), tl.where(takes_b, b_index, a_index)


@triton.jit(noinline=True)
def _halved(x):
    return x // 2


@triton.jit
def all_sorts_kernel(x_ptr, y_ptr, i_ptr, n, scale, N: tl.constexpr):
    """Operations that the other kernels have not."""
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    i = tl.load(i_ptr + at)
    tile = tl.reshape(x, (N // 4, 4))
    low, high = tl.split(tl.reshape(x, (N // 2, 2)))
    pairs = tl.reshape(tl.join(high, low), (N,))
    value, index = tl.reduce((x, at), 0, _lower)
    y = tl.gather(pairs, i % N, 0) + tl.sort(x) + tl.cumsum(x, 0) + value
    y += tl.sum(tl.trans(tile) * tl.max(tile), axis=1)[:, None].broadcast_to(4, N // 4).reshape(N)
    counts = tl.histogram(i, 8)
    tl.atomic_add(i_ptr + tl.arange(0, 8), counts, mask=tl.arange(0, 8) < n)
    found = tl.atomic_max(i_ptr + at, i ^ 1)
    tl.atomic_cas(i_ptr, index, n)
    k = n
    while k > 1:
        if k % 2 == 0:
            k = _halved(k)
        else:
            k -= 1
        y += k * scale
    if n > 1000:
        return
    bits = y.to(tl.int32, bitcast=True) >> (found & 7)
    y = tl.where(bits > 0, y, tl.math.fma(x, y, x)).to(tl.float16).to(tl.float32)
    tl.device_assert(n < 100, "n")
    tl.store(y_ptr + at, tl.exp(y - tl.abs(y)) / 3, mask=(at < n) & (y == y))


def _all_sorts() -> None:
    x, y, i = normal(32), normal(32), integers(32, low=0, high=99)
    all_sorts_kernel[(2,)](x, y, i, 20, 0.5, N=32)


def _machine() -> None:
    lanes = test_random_programs.LANES
    code = integers(2, 6, 2, low=0, high=9)
    test_random_programs.machine_kernel[(2,)](
        *(code, torch.tensor([6, 4], dtype=torch.int32)),
        *(integers(2, lanes, low=-9, high=9), integers(2, lanes, low=-9, high=9, seed=1)),
        *(integers(2, lanes, low=0, high=9), 6, lanes),
    )


class _Recorder:
    """A device that runs nothing and keeps each program once."""

    def __init__(self) -> None:
        self.seeds: dict[str, Seed] = {}

    def launch(self, launch: mini_triton.Launch) -> mini_triton.LaunchRecord:
        arguments = tuple(map(_described, launch.args))
        self.seeds.setdefault(launch.ttir, Seed(launch.kernel, launch.ttir, arguments))
        return mini_triton.LaunchRecord(launch.kernel, launch.grid)


def _described(argument: object) -> Argument:
    if not isinstance(argument, torch.Tensor):
        assert argument is None or isinstance(argument, int | float)
        return argument
    element = _ELEMENT[SIGNLESS.get(argument.dtype, argument.dtype)]
    return Tensor(tuple(argument.shape), element, tuple(argument.stride()))


def without_locations(ttir: str) -> str:
    """The text without source locations, half of it, which the other tests read."""
    ttir = re.sub(r"^#loc.*\n", "", ttir, flags=re.MULTILINE)
    return re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", ttir)


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Programs of `tests.kernels` and of kernels here, each once, in a fixed order."""
    recorder = _Recorder()
    before = mini_triton.set_device(recorder)
    try:
        for launch in (_all_sorts, _machine, *(ours for ours, _ in examples().values())):
            launch()
    finally:
        mini_triton.set_device(before)
    first, *others = recorder.seeds.values()
    return first, *(replace(seed, ttir=without_locations(seed.ttir)) for seed in others)
