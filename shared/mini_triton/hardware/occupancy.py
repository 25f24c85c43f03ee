"""How many programs an SM holds at once, and what keeps it from holding more.

Source: the arithmetic of NVIDIA's occupancy calculator for compute capability 8.0 and later:
registers are given out in units of 256 a warp, warps in fours (one for each of an SM's quarters),
shared memory in units of 128 bytes, of which the system takes 1 KiB a program.
"""

from __future__ import annotations

from dataclasses import dataclass

from mini_triton.hardware.gpu import WARP, Gpu

_REGISTER_UNIT = 256
_SHARED_UNIT = 128
_SYSTEM_SHARED = 1024
_QUARTERS = 4


@dataclass(frozen=True)
class Occupancy:
    """Programs that an SM holds.

    Attributes:
        programs: at once; 0 if not even one fits.
        limited_by: "registers", "shared memory", "threads" or "programs": what runs out first.
        warps: of those programs, as a share of what the SM could hold, 0 to 1.
    """

    programs: int
    limited_by: str
    warps: float


def occupancy(gpu: Gpu, num_warps: int, registers: int, shared: int) -> Occupancy:
    """Of programs with `num_warps` warps, `registers` a thread and `shared` bytes."""
    per_warp = _rounded_up(max(registers, 1) * WARP, _REGISTER_UNIT)
    warps_by_registers = gpu.registers // per_warp // _QUARTERS * _QUARTERS
    per_program = _rounded_up(shared, _SHARED_UNIT) + _SYSTEM_SHARED
    limits = {
        "registers": warps_by_registers // num_warps,
        "threads": gpu.most_threads // (num_warps * WARP),
        "programs": gpu.most_programs,
    }
    if shared:
        fits = shared <= gpu.most_shared_bytes
        limits["shared memory"] = gpu.shared_bytes // per_program if fits else 0
    limited_by = min(limits, key=lambda name: limits[name])
    programs = limits[limited_by]
    return Occupancy(programs, limited_by, programs * num_warps * WARP / gpu.most_threads)


def l1_bytes(gpu: Gpu, programs: int, shared: int) -> int:
    """What is left for L1 when the driver has carved out shared memory for `programs` of them."""
    needed = programs * (_rounded_up(shared, _SHARED_UNIT) + _SYSTEM_SHARED) if shared else 0
    carved = next((size for size in gpu.carveouts if size >= needed), gpu.carveouts[-1])
    return gpu.l1_bytes - carved


def _rounded_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
