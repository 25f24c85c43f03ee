"""Every case, and what of Liger-Kernel has none, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fidelity.liger_cases import distances, elementwise, losses, norms, positions, products
from tests.fidelity.liger_cases.case import Case

#: Functions of `liger_kernel.ops` that launch no Triton kernel.
WITHOUT_KERNEL = {
    "fused_linear_scaled_cross_entropy": "torch operations, except on Hopper, where it is CUTLASS",
    "fused_linear_scaled_cross_entropy_tp": "torch operations and collectives, or NVSHMEM",
    "chunked_loss": "torch operations under torch.compile",
    "cute, cutedsl, cutile": "other kernel languages than Triton",
}


def all_cases() -> Iterator[Case]:
    """In the order of the table."""
    for module in (norms, elementwise, positions, losses, distances, products):
        yield from module.cases()
