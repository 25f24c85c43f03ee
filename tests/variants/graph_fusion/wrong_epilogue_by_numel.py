"""Fuses values of as many elements, whatever their index maps: a product and its transpose.

breaks: 6
"""

from graph_ir import Graph, IndexMap, IndexMaps, Node
from graph_ir.sizes import numel


def _space(g: Graph, maps: IndexMaps, group: Group, node: Node) -> str | None:
    reduces = node.kind == "reduction"
    if node.kind not in ("pointwise", "reduction") or group.kind in ("composite", "opaque"):
        return None
    shape = g[node.inputs[0]].shape if reduces else node.shape
    size, rows = numel(shape), None
    if group.kind == "rowwise" and group.width is not None:
        rows = group.size // group.width
    if reduces or node.op == "rot_pairs":
        width = numel(shape[-1:])
        if size != group.size or (reduces and group.kind == "matmul"):
            return None
        if group.kind == "matmul":
            assert group.width is not None
            if group.width % width:
                return None
        elif group.width not in (None, width):
            return None
    if size != group.size and size != rows:
        return None
    space = "full" if size == group.size else "row"
    for k, i in enumerate(node.inputs):
        there = group.spaces.get(g.root(i))
        if there is None:
            continue
        index: IndexMap | None = maps.operand(node.id, k)
        if there == "row" and space == "full":
            assert index is not None and group.width is not None
            index = index.of_rows(group.width)
        elif there != space:
            return None
    return "row" if reduces else space
