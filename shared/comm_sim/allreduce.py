"""The all-reduce algorithms by their short names."""

from __future__ import annotations

from collections.abc import Callable

from comm_sim.arrays import Array
from comm_sim.doubling import all_reduce_doubling, all_reduce_rabenseifner
from comm_sim.in_network import all_reduce_in_network
from comm_sim.rings import all_reduce_ring
from comm_sim.trees import all_reduce_tree
from comm_sim.two_level import all_reduce_hierarchical

#: `ALLREDUCE_ALGOS[key] = (title, fn)`, where `fn(comm, arrays, label="all-reduce")` takes one 1-D
#: array a rank and returns the sum for each rank. `t_formula(key, …)` foretells the time.
ALLREDUCE_ALGOS: dict[str, tuple[str, Callable[..., list[Array]]]] = {
    "ring": ("ring", all_reduce_ring),
    "rd": ("recursive doubling", all_reduce_doubling),
    "rab": ("Rabenseifner", all_reduce_rabenseifner),
    "tree": ("binomial tree", all_reduce_tree),
    "innet": ("in network", all_reduce_in_network),
    "hier": ("hierarchical", all_reduce_hierarchical),
}
