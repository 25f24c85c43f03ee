"""Looks once more at the finished kernels: two that may be one become one, if no other has to
run between them, though neither uses the other's results. Fewer kernels, and fewer bytes
where both load the same.
"""

from collections.abc import Mapping

from graph_ir import Graph, IndexMaps, Kernel
from graph_ir.layout import KernelError, layout


def fuse(g: Graph, enable: bool = True, bind: Mapping[str, int] | None = None) -> list[Kernel]:
    g = g.bind(bind)
    if enable:
        parts = _merged(g, [(group.kind, sorted(group.spaces)) for group in _grouped(g)])
    else:
        parts = [
            ("rowwise" if node.kind == "reduction" else node.kind, [node.id])
            for node in g.nodes
            if node.computes
        ]
    return [_kernel(g, kind, inside) for kind, inside in parts]


def _kernel(g: Graph, kind: str, inside: list[int]) -> Kernel:
    loads: set[int] = set()
    for node in (g[number] for number in inside):
        for k, i in enumerate(node.inputs):
            if k != node.spec.mutates and g[i].op != "scalar":
                loads.add(g.root(i))
    stores = [
        number
        for number in inside
        if number in g.needed
        or g[number].spec.mutates is not None
        or not set(g.readers[number]) <= set(inside)
    ]
    nodes = tuple(g[number] for number in inside)
    return Kernel(g, kind, nodes, tuple(sorted(loads.difference(inside))), tuple(stores))


def _merged(g: Graph, parts: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
    """Each kernel together with a later one, of the next few, where that can be."""
    maps = IndexMaps(g)
    place = 0
    while place < len(parts):
        for later in range(place + 1, min(place + 9, len(parts))):
            kind = _kind_of_both(parts[place][0], parts[later][0])
            inside = sorted(parts[place][1] + parts[later][1])
            between = [number for _, part in parts[place + 1 : later] for number in part]
            down = not _depend(g, between, parts[place][1])  # the first can run later
            up = not _depend(g, parts[later][1], between)
            if kind is None or not (up or down) or not _can_be(g, maps, kind, inside):
                continue
            parts[place if up else later] = kind, inside
            del parts[later if up else place]
            break
        else:
            place += 1
    return parts


def _kind_of_both(one: str, other: str) -> str | None:
    kinds = {one, other} - {"pointwise"}
    if kinds & {"composite", "opaque"} or len(kinds) == 2 or one == other == "matmul":
        return None
    return kinds.pop() if kinds else "pointwise"


def _depend(g: Graph, some: list[int], others: list[int]) -> bool:
    return any(not set(others).isdisjoint(g.dependencies[number]) for number in some)


def _can_be(g: Graph, maps: IndexMaps, kind: str, inside: list[int]) -> bool:
    try:
        layout(Kernel(g, kind, tuple(g[number] for number in inside), (), ()), maps)
    except KernelError:
        return False
    return True
