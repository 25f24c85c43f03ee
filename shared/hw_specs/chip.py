"""What a roofline needs to know of a chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType


@dataclass(frozen=True)
class Chip:
    """An accelerator, as its maker's data sheet sees it: peaks that no program exceeds.

    Attributes:
        name: for titles.
        flops: operations a second for each precision, dense (no sparsity), of the fastest unit that
            computes in it: tensor or matrix units where there are any. A multiply-add is two.
        mem_bytes: bytes of device memory. Nominal: a "GB" of a data sheet is 1e9 here.
        mem_bw: bytes a second between memory and chip.
        link_bw: bytes a second that it sends to others while it receives as many: *one direction*
            of all its links together. Data sheets often print the sum of both directions.
        ports: ways that `link_bw` is divided over: 1 into a switch, 4 or 6 to the neighbours of a
            2-D or 3-D torus, n − 1 where each chip is wired to each.
        source: where the figures stand.

    Raises:
        ValueError: a figure is out of range.
    """

    name: str
    flops: Mapping[str, float] = field(hash=False)
    mem_bytes: float
    mem_bw: float
    link_bw: float
    ports: int
    source: str

    def __post_init__(self) -> None:
        figures = {
            "mem_bytes": self.mem_bytes,
            "mem_bw": self.mem_bw,
            "link_bw": self.link_bw,
        } | {f"flops[{precision!r}]": value for precision, value in self.flops.items()}
        for name, value in figures.items():
            if not value > 0:
                raise ValueError(f"{name} is {value}; it is more than 0")
        if not isinstance(self.ports, Integral) or self.ports < 1:
            raise ValueError(f"ports is {self.ports}; it is a whole number, 1 or more")
        object.__setattr__(self, "flops", MappingProxyType(dict(self.flops)))

    def peak_flops(self, precision: str = "bf16") -> float:
        """Operations a second.

        Args:
            precision: "bf16", "fp8", "fp16", "tf32", "fp32", … as far as the chip has it.

        Raises:
            ValueError: the chip does not compute in it, or its data sheet does not say how fast.
        """
        if precision not in self.flops:
            raise ValueError(
                f"{self.name}: there is no {precision}; there are {', '.join(self.flops)}"
            )
        return self.flops[precision]

    def ridge(self, precision: str = "bf16") -> float:
        """Operations for each byte of memory traffic at which both take the same time.

        A kernel with fewer is bound by memory, one with more by arithmetic.
        Source: S. Williams, A. Waterman, D. Patterson, "Roofline" (2009).

        Raises:
            ValueError: as `peak_flops`.
        """
        return self.peak_flops(precision) / self.mem_bw

    @property
    def port_bw(self) -> float:
        """Bytes a second in one direction of one port: `LinkSpec(alpha, chip.port_bw)`."""
        return self.link_bw / self.ports
