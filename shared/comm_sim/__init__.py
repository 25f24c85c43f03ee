"""comm_sim: devices on a simulated network. Data move for real, and a clock counts α and β.

    comm = Comm(switch(8, NVLINK4))
    sums = all_reduce_ring(comm, [rank0, rank1, …, rank7])   # a 1-D numpy array a rank
    comm.time                       # seconds; t_formula("ring", 8, nbytes, α, B) on an idle network
    comm.messages                   # who, to whom, bytes, start, end, label
    comm.get_comm_counts()          # {"all_reduce": 1}, as torch's CommDebugMode
    comm.timeline("ring.png")       # one row a device

What to try: two messages that meet in a port take twice the time, and two that do not take once;
for short arrays lg n steps beat n − 1, for long ones fewer bytes do (`rd` and `ring` of
`ALLREDUCE_ALGOS`); on `ring(…)` recursive doubling loses what it gains on a switch; between nodes
(`hierarchical`) one ring over all GPUs is slower than one in each node and some across.

`network` has the rules of time, `topology` the wires, `formulas` the closed forms.
"""

from comm_sim.allreduce import ALLREDUCE_ALGOS
from comm_sim.comm import Comm
from comm_sim.doubling import (
    all_reduce_doubling,
    all_reduce_rabenseifner,
    allgather_doubling,
    reduce_scatter_halving,
)
from comm_sim.formulas import t_formula
from comm_sim.in_network import all_reduce_in_network
from comm_sim.links import (
    IB_HDR,
    IB_NDR,
    ICI_V5E,
    ICI_V5P,
    NVLINK3,
    NVLINK4,
    NVLINK5,
    PCIE5,
    LinkSpec,
)
from comm_sim.network import SWITCH, Call, Message, Work
from comm_sim.pairwise import all_to_all
from comm_sim.rings import all_reduce_ring, allgather_ring, reduce_scatter_ring
from comm_sim.topology import Route, Topology, hierarchical, ring, switch, torus
from comm_sim.trees import all_reduce_tree, broadcast_pipelined, broadcast_tree, reduce_tree
from comm_sim.two_level import all_reduce_hierarchical

__all__ = [
    "ALLREDUCE_ALGOS",
    "IB_HDR",
    "IB_NDR",
    "ICI_V5E",
    "ICI_V5P",
    "NVLINK3",
    "NVLINK4",
    "NVLINK5",
    "PCIE5",
    "SWITCH",
    "Call",
    "Comm",
    "LinkSpec",
    "Message",
    "Route",
    "Topology",
    "Work",
    "all_reduce_doubling",
    "all_reduce_hierarchical",
    "all_reduce_in_network",
    "all_reduce_rabenseifner",
    "all_reduce_ring",
    "all_reduce_tree",
    "all_to_all",
    "allgather_doubling",
    "allgather_ring",
    "broadcast_pipelined",
    "broadcast_tree",
    "hierarchical",
    "reduce_scatter_halving",
    "reduce_scatter_ring",
    "reduce_tree",
    "ring",
    "switch",
    "t_formula",
    "torus",
]
