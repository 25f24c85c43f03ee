"""The least time that a launch can take: the slowest of the sides that it loads.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline" (2009), with L2 as a second slope and a
roof for each precision. Sides work at the same time; a side's units add up.
"""

from __future__ import annotations

from collections.abc import Mapping

from mini_triton.hardware.gpu import SECTOR, Gpu


def times(
    gpu: Gpu,
    dram_bytes: int,
    l2_sectors: int,
    products: Mapping[str, int],
    others: Mapping[str, int],
) -> dict[str, float]:
    """Seconds by side: "DRAM", "L2", "tensor cores", "CUDA cores".

    Args:
        gpu: whose peaks.
        dram_bytes: read and written, in the end.
        l2_sectors: between L2 and the SMs, both ways.
        products: operations of tile products by precision; "fp32" runs on the CUDA cores.
        others: other floating-point operations by precision.
    """
    found = {"DRAM": dram_bytes / gpu.chip.mem_bw, "L2": l2_sectors * SECTOR / gpu.l2_bw}
    tensor = sum(n / peak(gpu, p) for p, n in products.items() if p != "fp32")
    # One multiply-add in a cycle is two of the peak's operations; an operation by itself takes it
    # just as long.
    plain = sum(2 * n / peak(gpu, p) for p, n in others.items())
    plain += products.get("fp32", 0) / peak(gpu, "fp32")
    if tensor:
        found["tensor cores"] = tensor
    if plain:
        found["CUDA cores"] = plain
    return found


def peak(gpu: Gpu, precision: str) -> float:
    """Operations a second in `precision`, or in the next wider one that the chip computes in."""
    wider = {"fp4": "fp8", "fp8": "bf16", "int8": "bf16", "fp16": "bf16", "bf16": "fp32"}
    while precision not in gpu.chip.flops and precision in wider:
        precision = wider[precision]
    return gpu.chip.peak_flops(precision if precision in gpu.chip.flops else "fp32")
