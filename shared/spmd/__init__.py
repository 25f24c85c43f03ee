"""spmd: one program for n ranks, whether one process holds them all or each has its own.

    def matmul(comm, A_sh, B_sh):                # lists: an entry for each rank held here
        partial = [a @ b for a, b in zip(A_sh, B_sh, strict=True)]
        return comm.all_reduce([p.ravel() for p in partial])

    matmul(comm_sim.Comm(switch(4, NVLINK4)), A_sh, B_sh)       # simulated: all four here

What to try: print `comm.n`, `comm.ranks` and the lengths of the lists on both sides; let a rank
read another's entry, which works in a simulation and is an IndexError on a real rank; forget the
all-reduce at one rank of a group only.

`communicator` has the interface. `comm_sim.Comm` implements it with a clock.
"""

from spmd.communicator import Communicator

__all__ = ["Communicator"]
