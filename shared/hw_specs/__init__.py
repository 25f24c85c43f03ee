"""hw_specs: what chips can do at best, in operations and bytes a second.

    H100.peak_flops("bf16")         # 989e12 operations a second, dense
    H100.mem_bw                     # 3.35e12 bytes a second
    H100.ridge("bf16")              # 295 operations a byte: below, memory is the bound
    LinkSpec(2e-6, H100.port_bw)    # a link for comm_sim

What to try: the ridge of every chip in CHIPS: how many tokens must share the weights of a decode
step until arithmetic is the bound? `replace(H100, mem_bw=…)` makes a chip that nobody sells.
"""

from hw_specs.chip import Chip
from hw_specs.chips import A100, A100_40GB, B200, CHIPS, H100, H200, MI300X, TPU_V5E, TPU_V5P

__all__ = [
    "A100",
    "A100_40GB",
    "B200",
    "CHIPS",
    "H100",
    "H200",
    "MI300X",
    "TPU_V5E",
    "TPU_V5P",
    "Chip",
]
