"""GPUs that a launch can be modelled on: what `hw_specs` has of a chip, and what is inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import hw_specs

#: Bytes of a sector, the unit of traffic between caches and memory, and of a cache line.
SECTOR = 32
LINE = 128
#: Threads of a warp.
WARP = 32


@dataclass(frozen=True)
class Gpu:
    """One GPU. `dataclasses.replace(GPUS["H200"], l2_bytes=…)` makes one that nobody sells.

    Attributes:
        chip: peaks and memory, from `hw_specs`.
        capability: compute capability: 90 for sm_90.
        sms: multiprocessors.
        registers: 32-bit registers of an SM.
        shared_bytes: shared memory of an SM that programs can have.
        most_shared_bytes: of one program (the opt-in limit that Triton asks the driver for).
        most_threads, most_programs: resident in an SM at once.
        l1_bytes: L1 and shared memory together, which share one memory.
        carveouts: the sizes of its shared part that a driver can choose.
        l2_bytes: L2 cache.
        l2_bw: bytes a second between L2 and the SMs, about what microbenchmarks reach.
    """

    chip: hw_specs.Chip
    capability: int
    sms: int
    registers: int
    shared_bytes: int
    most_shared_bytes: int
    most_threads: int
    most_programs: int
    l1_bytes: int
    carveouts: tuple[int, ...]
    l2_bytes: int
    l2_bw: float

    @property
    def name(self) -> str:
        """The chip's."""
        return self.chip.name


_KIB = 1024
# Limits of an SM: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
# SMs and L2: NVIDIA's white papers on the A100 and the H100, and what a B200 says of itself.
# L2 bandwidth: no data sheet has it. These are of the size that public microbenchmarks report
# (Chips and Cheese on A100, H100 and B200), rounded: good enough to say what binds.
_H100 = Gpu(
    chip=hw_specs.H100,
    capability=90,
    sms=132,
    registers=65_536,
    shared_bytes=228 * _KIB,
    most_shared_bytes=227 * _KIB,
    most_threads=2048,
    most_programs=32,
    l1_bytes=256 * _KIB,
    carveouts=tuple(n * _KIB for n in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
    l2_bytes=50 * _KIB * _KIB,
    l2_bw=5.5e12,
)
_A100 = replace(
    _H100,
    chip=hw_specs.A100,
    capability=80,
    sms=108,
    shared_bytes=164 * _KIB,
    most_shared_bytes=163 * _KIB,
    l1_bytes=192 * _KIB,
    carveouts=tuple(n * _KIB for n in (0, 8, 16, 32, 64, 100, 132, 164)),
    l2_bytes=40 * _KIB * _KIB,
    l2_bw=4.5e12,
)

#: By the name of the chip in `hw_specs`.
GPUS: Mapping[str, Gpu] = MappingProxyType(
    {
        gpu.name: gpu
        for gpu in (
            _A100,
            replace(_A100, chip=hw_specs.A100_40GB),
            _H100,
            replace(_H100, chip=hw_specs.H200),
            replace(
                _H100,
                chip=hw_specs.B200,
                capability=100,
                sms=148,
                l2_bytes=126 * _KIB * _KIB,
                l2_bw=10e12,
            ),
        )
    }
)
#: The GPU that a bare compute capability stands for.
_OF_CAPABILITY = {"sm_80": "A100 80GB", "sm_90": "H100", "sm_100": "B200"}


def gpu_named(name: str | Gpu) -> Gpu:
    """The GPU of that name: a chip of `hw_specs` ("H200") or a compute capability ("sm_90").

    Raises:
        ValueError: there is none; the text lists those that there are.
    """
    if isinstance(name, Gpu):
        return name
    found = GPUS.get(_OF_CAPABILITY.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise ValueError(
            f"hardware={name!r} is no GPU that launches can be modelled on; there are "
            f"{', '.join([*_OF_CAPABILITY, *GPUS])}"
        )
    return found
