"""What one link costs: a message of s bytes takes α + s/B seconds (Hockney's model).

R. Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994). α is paid once for
a message however short it is, B is what one direction of a port carries. The two meet at
s = α·B bytes: shorter messages cost mostly latency, longer ones mostly bandwidth.

The presets' bandwidths are the vendors' nominal rates. Their latencies are not in any data sheet:
for NVLink, PCIe and InfiniBand they are what NCCL's own cost model takes for one step of a ring in
protocol LL128 (`hwLat` in src/graph/tuning.cc: 1.9, 2.5 and 4.0 µs), for TPUs what "How to Scale
Your Model", part 3, takes for one hop: 1 µs. Fit both to your machine where you can measure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class LinkSpec:
    """A link, as one direction of it sees it.

    Attributes:
        alpha: seconds that every message takes, whatever its size; 0 or more.
        bw: bytes a second in one direction; more than 0, `math.inf` for a link of latency alone.

    Raises:
        ValueError: a number is out of range.
    """

    alpha: float
    bw: float

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < math.inf:
            raise ValueError(f"alpha is {self.alpha} s; a latency is 0 or more, and finite")
        if not self.bw > 0:
            raise ValueError(f"bw is {self.bw} bytes/s; a bandwidth is more than 0")

    def time(self, nbytes: float) -> float:
        """Seconds that a message of `nbytes` takes when nothing is in its way."""
        return self.alpha + nbytes / self.bw

    @property
    def half_size(self) -> float:
        """Bytes of the message that reaches half of `bw`: α·B (Hockney's n½)."""
        return self.alpha * self.bw


#: A100: 600 GB/s of NVLink a GPU in both directions (NVIDIA A100 data sheet).
NVLINK3 = LinkSpec(alpha=1.9e-6, bw=300e9)
#: H100 and H200: 900 GB/s in both directions (NVIDIA H100 data sheet).
NVLINK4 = LinkSpec(alpha=1.9e-6, bw=450e9)
#: B200: 1.8 TB/s in both directions (NVIDIA DGX B200 data sheet).
NVLINK5 = LinkSpec(alpha=1.9e-6, bw=900e9)
#: PCI Express 5.0, 16 lanes: 32 GT/s a lane, 128 bits in 130 (PCI-SIG), so 63 GB/s.
PCIE5 = LinkSpec(alpha=2.5e-6, bw=63e9)
#: InfiniBand HDR: 200 Gb/s a port (NVIDIA ConnectX-6 data sheet).
IB_HDR = LinkSpec(alpha=4.0e-6, bw=25e9)
#: InfiniBand NDR: 400 Gb/s a port (NVIDIA ConnectX-7 data sheet); one a GPU in a DGX H100.
IB_NDR = LinkSpec(alpha=4.0e-6, bw=50e9)
#: TPU v5e, one of four links: 400 GB/s a chip in both directions (Google Cloud TPU v5e).
ICI_V5E = LinkSpec(alpha=1.0e-6, bw=50e9)
#: TPU v5p, one of six links: 1,200 GB/s a chip in both directions (Google Cloud TPU v5p).
ICI_V5P = LinkSpec(alpha=1.0e-6, bw=100e9)
