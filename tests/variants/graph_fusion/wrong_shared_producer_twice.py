"""Computes a producer again in each kernel that needs it, without loading what it is computed
from.

breaks: 6
"""

from collections.abc import Mapping

from graph_ir import Graph, Kernel
from graph_ir.sizes import numel


def fuse(g: Graph, enable: bool = True, bind: Mapping[str, int] | None = None) -> list[Kernel]:
    g = g.bind(bind)
    groups = _grouped(g) if enable else [_new_group(node) for node in g.nodes if node.computes]
    home = {number: place for place, group in enumerate(groups) for number in group.spaces}
    kernels = []
    for place, group in enumerate(groups):
        again = {
            g.root(i)
            for number in group.spaces
            for i in g[number].inputs
            if group.kind == "pointwise" and g[g.root(i)].kind == "pointwise"
        }
        again = {number for number in again if numel(g[number].shape) == group.size}
        inside = sorted({*group.spaces, *again})  # the order of the program
        nodes = tuple(g[number] for number in inside)
        loaded = dict.fromkeys(
            g.root(i)
            for node in nodes
            for k, i in enumerate(node.inputs)
            if node.id in group.spaces and g.root(i) not in inside  # wrong: they have operands
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
