"""Kernels run in another order that their dependencies allow, and name what they load and store
from the last to the first.
"""

from collections.abc import Mapping

from graph_ir import Graph, Kernel


def _in_program_order(g: Graph, enable: bool, bind: Mapping[str, int] | None) -> list[Kernel]:
    g = g.bind(bind)
    groups = _grouped(g) if enable else [_new_group(node) for node in g.nodes if node.computes]
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


def fuse(g: Graph, enable: bool = True, bind: Mapping[str, int] | None = None) -> list[Kernel]:
    kernels = _in_program_order(g, enable, bind)
    g = g.bind(bind)
    home = {node.id: place for place, kernel in enumerate(kernels) for node in kernel.nodes}
    before: list[set[int]] = []
    behind: list[set[int]] = [set() for _ in kernels]
    for place, kernel in enumerate(kernels):
        found = {home[d] for node in kernel.nodes for d in g.dependencies[node.id] if d in home}
        before.append(found - {place})
        for earlier in before[place]:
            behind[earlier].add(place)
    ready = [place for place, needed in enumerate(before) if not needed]
    ordered = []
    while ready:  # the last one that may run: depth first
        place = ready.pop()
        kernel = kernels[place]
        inputs, outputs = kernel.inputs[::-1], kernel.outputs[::-1]
        ordered.append(Kernel(g, kernel.kind, kernel.nodes, inputs, outputs))
        for later in sorted(behind[place]):
            before[later].discard(place)
            if not before[later]:
                ready.append(later)
    return ordered
