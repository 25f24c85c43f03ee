"""A pointwise kernel whose operands cost less to load than its results vanishes: each kernel
that needs these computes them itself.
"""

from collections.abc import Mapping

from graph_ir import Graph, IndexMaps, Kernel
from graph_ir.layout import KernelError, layout


def fuse(g: Graph, enable: bool = True, bind: Mapping[str, int] | None = None) -> list[Kernel]:
    g = g.bind(bind)
    groups = _grouped(g) if enable else [_new_group(node) for node in g.nodes if node.computes]
    kernels: list[Kernel] = [_of(g, group.kind, set(group.spaces)) for group in groups]
    maps = IndexMaps(g)
    place = 0
    while enable and place < len(kernels):
        changed = _without(g, maps, kernels, place)
        if changed is None:
            place += 1
        else:
            kernels = changed
    return kernels


def _without(g: Graph, maps: IndexMaps, kernels: list[Kernel], place: int) -> list[Kernel] | None:
    """The kernels without this one, whose nodes are in those that load from it; None if that
    cannot be, or moves more bytes."""
    kernel = kernels[place]
    numbers = {node.id for node in kernel.nodes}
    memory = numbers.union(kernel.inputs)
    if kernel.kind != "pointwise" or numbers & g.needed or memory & g.mutated:
        return None
    changed, gain = list(kernels), kernel.reads + kernel.writes
    for later, other in enumerate(kernels):
        if numbers.isdisjoint(other.inputs):
            continue
        both = _of(g, other.kind, numbers | {node.id for node in other.nodes})
        try:
            layout(both, maps)
        except KernelError:
            return None
        gain += other.reads + other.writes - both.reads - both.writes
        changed[later] = both
    del changed[place]
    return changed if gain > 0 else None


def _of(g: Graph, kind: str, numbers: set[int]) -> Kernel:
    nodes = tuple(g[number] for number in sorted(numbers))
    loads = {
        g.root(i)
        for node in nodes
        for k, i in enumerate(node.inputs)
        if k != node.spec.mutates and g[i].op != "scalar"
    }
    stores = [
        node.id
        for node in nodes
        if node.id in g.needed
        or node.spec.mutates is not None
        or not numbers.issuperset(g.readers[node.id])
    ]
    return Kernel(g, kind, nodes, tuple(sorted(loads - numbers)), tuple(stores))
