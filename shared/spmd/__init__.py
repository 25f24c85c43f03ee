"""spmd: one program for n ranks, whether one process holds them all or each has its own.

    def product(comm, A_sh, B_sh):               # lists: an entry for each rank held here
        partial = [a @ b for a, b in zip(A_sh, B_sh, strict=True)]
        return comm.all_reduce([p.ravel() for p in partial])

    product(comm_sim.Comm(switch(4, NVLINK4)), A_sh, B_sh)      # simulated: all four here

    def program(comm, A_sh, B_sh):               # real: four processes, one entry each
        (rank,) = comm.ranks
        return product(comm, [A_sh[rank]], [B_sh[rank]])[0]

    spmd.run(program, 4, A_sh, B_sh)             # gloo, or NCCL where there are four GPUs

What to try: print `comm.n`, `comm.ranks` and the lengths of the lists on both sides; let a rank
read another's entry, which works in a simulation and is an IndexError on a real rank; leave out
the all-reduce at one rank, or give it another length there.

`communicator` has the interface. `comm_sim.Comm` implements it with a clock, `TorchComm` with
torch.distributed; `run` starts processes. These two need torch, and load it when they are used.
"""

from typing import TYPE_CHECKING, Any

from spmd.communicator import Communicator

if TYPE_CHECKING:
    from spmd.processes import RankError, run
    from spmd.torch_comm import BackendError, TorchComm

__all__ = ["BackendError", "Communicator", "RankError", "TorchComm", "run"]

_WITH_TORCH = {
    "BackendError": "spmd.torch_comm",
    "RankError": "spmd.processes",
    "TorchComm": "spmd.torch_comm",
    "run": "spmd.processes",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'spmd' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WITH_TORCH[name]), name)
