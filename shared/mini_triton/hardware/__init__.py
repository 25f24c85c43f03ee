"""What a named GPU would make of a launch: resources, sectors, cache lines, DRAM bytes, time.

    with mini_triton.profile(hardware="H200") as p:
        kernel[grid](x, y, n, BLOCK=128)
    p.launches[0].hardware          # a HardwareRecord
    p.html("profile.html")

Nothing here needs a GPU. What a kernel takes of an SM is what Triton's own compiler and `ptxas` say
for that GPU; which lanes make up a warp's request is read from the compiled program; what the
caches do with the requests is a model (`caches`), and says so. `docs/hardware.md` has the limits.

gpu           figures of GPUs
compiled      Triton's real compile: registers, spills, shared memory, or why it does not fit
occupancy     how many programs an SM holds at once
layouts       which element of a tile each thread of each warp holds
compiled_ops  the memory instructions that each load and store of the program has become
coalescing    the same without a compiler: the layouts that Triton would choose
sectors       requests and 32-byte sectors of an access
trace         observes a launch and keeps what the caches need
access_map    which programs touched which part of a tensor
caches        L1 and L2 over waves of programs
arithmetic    floating-point operations, by the unit that does them
roofline      the least time, and what it is bound by
record        what is kept of all this
units         times and operations for people
display       tables for terminals
model         puts it together
"""

from mini_triton.hardware.gpu import GPUS, Gpu, gpu_named
from mini_triton.hardware.record import HardwareRecord

__all__ = ["GPUS", "Gpu", "HardwareRecord", "gpu_named"]
