"""Pointwise values are computed again in each kernel that needs them, where that moves fewer
bytes than to store and load them.
"""

from collections.abc import Mapping

from graph_ir import Graph, IndexMaps, Kernel
from graph_ir.layout import KernelError, layout

Parts = list[tuple[str, frozenset[int]]]  # of each kernel: its kind, and its nodes


def fuse(g: Graph, enable: bool = True, bind: Mapping[str, int] | None = None) -> list[Kernel]:
    g = g.bind(bind)
    groups = _grouped(g) if enable else [_new_group(node) for node in g.nodes if node.computes]
    parts: Parts = [(group.kind, frozenset(group.spaces)) for group in groups]
    kernels = _kernels(g, parts)
    maps = IndexMaps(g)
    for number in [number for kernel in kernels for number in kernel.outputs if enable]:
        trial = _computed_again(g, maps, parts, number)
        if trial is None:
            continue
        others = _kernels(g, trial)
        if _bytes(others) < _bytes(kernels):
            parts, kernels = trial, others
    return kernels


def _computed_again(g: Graph, maps: IndexMaps, parts: Parts, number: int) -> Parts | None:
    """The kernels if none has to load this value: each computes it, with what it is made of."""
    place = next(place for place, (_, inside) in enumerate(parts) if number in inside)
    cone, memory, ahead = {number}, {number}, [number]
    while ahead:
        roots = {g.root(i) for i in g[ahead.pop()].inputs}
        memory |= roots
        ahead += roots & parts[place][1] - cone
        cone |= roots & parts[place][1]
    if parts[place][0] != "pointwise" or number in g.needed or memory & g.mutated:
        return None
    changed = []
    for kind, inside in parts:
        loads = number not in inside and not inside.isdisjoint(g.readers[number])
        changed.append((kind, inside | cone if loads else inside))
    kept: set[int] = set()
    for i in sorted(parts[place][1], reverse=True):
        others = changed[:place] + changed[place + 1 :]
        loaded = any(_loads(g, inside, i) for _, inside in others)
        if i in g.needed or loaded or not kept.isdisjoint(g.readers[i]):
            kept.add(i)
    changed[place] = "pointwise", frozenset(kept)
    changed = [(kind, inside) for kind, inside in changed if inside]
    try:
        for kind, inside in changed:
            layout(Kernel(g, kind, tuple(g[i] for i in sorted(inside)), (), ()), maps)
    except KernelError:
        return None
    return changed


def _loads(g: Graph, inside: frozenset[int], number: int) -> bool:
    return number not in inside and not inside.isdisjoint(g.readers[number])


def _kernels(g: Graph, parts: Parts) -> list[Kernel]:
    """What each loads and stores; of several that have a value, the first stores it."""
    kernels, seen = [], set[int]()
    for kind, inside in parts:
        nodes = tuple(g[number] for number in sorted(inside))
        loads = {
            g.root(i)
            for node in nodes
            for k, i in enumerate(node.inputs)
            if k != node.spec.mutates and g[i].op != "scalar"
        }
        stores = [
            number
            for number in sorted(inside - seen)
            if number in g.needed
            or g[number].spec.mutates is not None
            or any(_loads(g, other, number) for _, other in parts)
        ]
        seen |= inside
        kernels.append(Kernel(g, kind, nodes, tuple(sorted(loads - inside)), tuple(stores)))
    return kernels


def _bytes(kernels: list[Kernel]) -> int:
    return sum(kernel.reads + kernel.writes for kernel in kernels)
