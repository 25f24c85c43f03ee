"""What is kept of a launch on a modelled GPU: plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from mini_triton.hardware.access_map import AccessMap
from mini_triton.hardware.gpu import SECTOR


@dataclass
class Resources:
    """What a program takes of an SM.

    Attributes:
        compiled: by Triton's own compiler for this GPU; else registers, spills and shared memory
            are not known, and `programs` is what threads alone allow.
        error: why it cannot run, in Triton's words; empty if it can.
        num_warps, num_stages: as launched.
        registers: 32-bit ones of a thread.
        spills: 32-bit words of a thread in memory for lack of registers.
        shared: bytes of a program.
        programs: that an SM holds at once.
        limited_by: "registers", "shared memory", "threads" or "programs".
        occupancy: warps of those, as a share of what an SM can hold.
    """

    compiled: bool
    error: str
    num_warps: int
    num_stages: int
    registers: int
    spills: int
    shared: int
    programs: int
    limited_by: str
    occupancy: float


@dataclass
class AccessRecord:
    """One load, store or atomic of the program on one tensor, carried out by one instruction.

    Attributes:
        file, line: of the kernel, as in `LaunchRecord.lines`.
        tensor: argument.
        kind: "load", "store" or "atomic".
        instruction: "ld", "ldgsts" (asynchronous copy), "tma", "st" or "atom".
        width: bytes that a thread moves at a time; 0 if no thread does.
        exact: layout and width were read from the compiled program, not modelled.
        requests: instructions executed by warps with an active lane.
        sectors: of 32 bytes that the requests touch: what L1 is asked for.
        ideal: sectors that their bytes would fill.
        l2_sectors: what L1 asks L2 for.
        least_l2_sectors: what arrives there if as many requests of different SMs are merged on the
            way as can be.
    """

    file: str
    line: int
    tensor: str
    kind: str
    instruction: str
    width: int
    exact: bool
    requests: int
    sectors: int
    ideal: int
    l2_sectors: int
    least_l2_sectors: int

    @property
    def efficiency(self) -> float:
        """Ideal sectors over those requested, 0 to 1; 1 if there were none."""
        return self.ideal / self.sectors if self.sectors else 1.0


@dataclass
class TensorRecord:
    """What was touched of one tensor, at least once: bytes that a perfect cache would move."""

    unique_loaded_bytes: int
    unique_stored_bytes: int
    map: AccessMap


@dataclass
class HardwareRecord:
    """A launch on a modelled GPU; every count is an exact integer of the model.

    Attributes:
        gpu: its name.
        resources: registers, shared memory, occupancy.
        accesses: requests and sectors, by access.
        tensors: unique bytes and access maps, by argument.
        wave: programs resident at once.
        l1_bytes: of an SM, beside the shared memory that its programs take.
        l2_bytes: of the GPU.
        dram_read_bytes: L2 misses.
        dram_written_bytes: dirty sectors that L2 threw out before the launch ended.
        dram_left_bytes: dirty sectors in L2 when it ended.
        products, others: floating-point operations by precision: of tile products, and all others.
        times: least seconds by side: "DRAM", "L2", "tensor cores", "CUDA cores".
        notes: what could not be modelled.
    """

    gpu: str
    resources: Resources
    accesses: list[AccessRecord] = field(default_factory=list)
    tensors: dict[str, TensorRecord] = field(default_factory=dict)
    wave: int = 1
    l1_bytes: int = 0
    l2_bytes: int = 0
    dram_read_bytes: int = 0
    dram_written_bytes: int = 0
    dram_left_bytes: int = 0
    products: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    # ------------------------------------------------------------------ sums
    @property
    def dram_bytes(self) -> int:
        """All that DRAM gives and, in the end, takes."""
        return self.dram_read_bytes + self.dram_written_bytes + self.dram_left_bytes

    @property
    def unique_loaded_bytes(self) -> int:
        """Of distinct elements loaded, over all tensors."""
        return sum(tensor.unique_loaded_bytes for tensor in self.tensors.values())

    @property
    def unique_stored_bytes(self) -> int:
        """Of distinct elements stored, over all tensors."""
        return sum(tensor.unique_stored_bytes for tensor in self.tensors.values())

    def sectors(self, *instructions: str) -> int:
        """Sectors requested of L1 by instructions of these kinds; of any, if none is named."""
        return sum(
            access.sectors
            for access in self.accesses
            if not instructions or access.instruction in instructions
        )

    def l2_sectors(self, *kinds: str) -> int:
        """Sectors that L1 asks L2 for, by accesses of these kinds ("load", …); any, if none."""
        return sum(a.l2_sectors for a in self.accesses if not kinds or a.kind in kinds)

    @property
    def least_l2_sectors(self) -> int:
        """Sectors that arrive at L2 if as many requests are merged as can be."""
        return sum(access.least_l2_sectors for access in self.accesses)

    @property
    def efficiency(self) -> float:
        """Ideal sectors over those requested, over all accesses."""
        sectors = self.sectors()
        return sum(access.ideal for access in self.accesses) / sectors if sectors else 1.0

    @property
    def dram_sectors(self) -> int:
        """Of `dram_bytes`."""
        return self.dram_bytes // SECTOR

    @property
    def flops(self) -> int:
        """All floating-point operations."""
        return sum(self.products.values()) + sum(self.others.values())

    @property
    def time(self) -> float:
        """Seconds that the launch takes at least."""
        return max(self.times.values(), default=0.0)

    @property
    def bound(self) -> str:
        """The side that takes longest; empty if nothing was done."""
        return max(self.times, key=lambda side: self.times[side]) if self.times else ""

    @property
    def fits(self) -> bool:
        """False if the GPU cannot run it; `resources.error` says why."""
        return not self.resources.error

    # ------------------------------------------------------------------ plain data
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HardwareRecord:
        """The record that `to_dict` described."""
        tensors = {
            name: TensorRecord(**{**tensor, "map": AccessMap.from_dict(tensor["map"])})
            for name, tensor in data["tensors"].items()
        }
        accesses = [AccessRecord(**access) for access in data["accesses"]]
        resources = Resources(**data["resources"])
        return cls(**{**data, "resources": resources, "accesses": accesses, "tensors": tensors})
