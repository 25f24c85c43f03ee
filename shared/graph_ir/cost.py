"""What kernels cost: a roofline for each, and a launch.

A kernel's arithmetic takes its matrix products at the rate of the tensor cores and all other
operations at that of the other units, one after the other; its memory traffic goes on at the same
time, so the longer of the two counts. Each launch costs a fixed time beside.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline" (2009). The 4 µs of a launch are what
drivers and queues take when nothing hides it: an assumption of the course, not of a data sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hw_specs

from graph_ir.kernels import Kernel, total_bytes


@dataclass(frozen=True)
class Machine:
    """What a roofline needs.

    Attributes:
        name: for titles.
        matmul: operations a second in matrix products, a multiply-add being two.
        other: operations a second elsewhere.
        bw: bytes a second between memory and chip.
        launch: seconds for each kernel, whatever it does.
    """

    name: str
    matmul: float
    other: float
    bw: float
    launch: float


#: bf16 products; float32 on the CUDA cores for the rest.
H100 = Machine(
    "H100",
    matmul=hw_specs.H100.peak_flops("bf16"),
    other=hw_specs.H100.peak_flops("fp32"),
    bw=hw_specs.H100.mem_bw,
    launch=4e-6,
)


def kernel_time(kernel: Kernel, machine: Machine = H100) -> float:
    """Seconds that a kernel takes, without its launch."""
    products, others = kernel.flops
    arithmetic = products / machine.matmul + others / machine.other
    return max(arithmetic, (kernel.reads + kernel.writes) / machine.bw)


def graph_cost(kernels: Sequence[Kernel], machine: Machine = H100) -> dict[str, Any]:
    """What all kernels cost, one after the other.

    Returns:
        kernels: how many.
        bytes: loaded and stored.
        flops: operations, of products and others.
        t: seconds without launches.
        t_total: t + kernels · launch.
    """
    t = sum(kernel_time(kernel, machine) for kernel in kernels)
    return {
        "kernels": len(kernels),
        "bytes": total_bytes(kernels),
        "flops": sum(sum(kernel.flops) for kernel in kernels),
        "t": t,
        "t_total": t + len(kernels) * machine.launch,
    }
