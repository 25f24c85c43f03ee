"""Launches a kernel for each view, which copies.

breaks: 6
"""

from collections.abc import Mapping

from graph_ir import Graph, Kernel


def fuse(g: Graph, enable: bool = True, bind: Mapping[str, int] | None = None) -> list[Kernel]:
    g = g.bind(bind)
    groups = _grouped(g) if enable else [_new_group(node) for node in g.nodes if node.computes]
    groups += [Group("pointwise", 0, None, {n.id: "full"}) for n in g.nodes if n.kind == "view"]
    home = {number: place for place, group in enumerate(groups) for number in group.spaces}
    kernels = []
    for place, group in enumerate(groups):
        inside = sorted(group.spaces)  # the order of the program
        nodes = tuple(g[number] for number in inside)
        loaded = dict.fromkeys(
            g.root(i)
            for node in nodes
            for k, i in enumerate(node.inputs)
            if k != node.spec.mutates and home.get(g.root(i)) != place and g[i].op != "scalar"
        )
        stored = tuple(
            number
            for number in inside
            if number in g.needed
            or g[number].spec.mutates is not None
            or any(home[reader] != place for reader in g.readers[number])
        )
        kernels.append(Kernel(g, group.kind, nodes, tuple(loaded), stored))
    return kernels
