"""match_attention walks down, from q kᵀ to the product with v."""

from graph_ir import Builder, Graph, Node
from graph_ir.dtypes import promote

Found = dict[int, tuple[int, int, dict[str, object]]]  # last product → q, kᵀ, attributes


def match_attention(g: Graph) -> tuple[Graph, int]:
    found: Found = {}
    for node in g.nodes:
        if node.op == "matmul":
            _walk_down(g, node, found)
    build = Builder(g)
    new: list[int] = []
    for node in g.nodes:
        if node.id not in found:
            new.append(build.copy(node, [new[i] for i in node.inputs]))
            continue
        q, transposed, attrs = found[node.id]
        axes = list(range(len(g[q].shape)))
        axes[-2:] = axes[:-3:-1]
        k = build.add("permute", [new[transposed]], axes=tuple(axes))  # kᵀ, turned back
        new.append(build.add("flash_attention", [new[q], k, new[node.inputs[1]]], **attrs))
    return build.finish([new[i] for i in g.outputs]), len(found)


def _walk_down(g: Graph, product: Node, found: Found) -> None:
    """Enters the attention that begins with this product, if one does."""

    def user(node: Node) -> Node | None:
        """Who alone uses a node's result."""
        if len(g.users[node.id]) != 1 or node.id in g.needed | g.mutated:
            return None
        return g[g.users[node.id][0]]

    scale, causal, at = 1.0, False, product
    below = user(at)
    if below is not None and below.op in ("mul", "div"):
        other = [i for i in below.inputs if i != at.id]
        if len(other) != 1 or g[other[0]].op != "scalar":
            return
        scale = g[other[0]].attrs["value"]
        if below.op == "div":
            if scale == 0 or below.inputs[0] != at.id:
                return
            scale = 1 / scale
        at, below = below, user(below)
    if below is not None and below.op == "add":
        other = [i for i in below.inputs if i != at.id]
        if len(other) != 1 or not _is_causal(g, other[0], at):
            return
        causal, at, below = True, below, user(below)
    last = user(below) if below is not None and below.op == "softmax" else None
    if below is None or last is None or last.op != "matmul" or last.inputs[0] != below.id:
        return
    operands = [g[i] for i in (*product.inputs, last.inputs[1])]
    if len({node.shape[:-2] for node in operands}) > 1:
        return
    if promote(tuple(node.dtype for node in operands)) != last.dtype:
        return
    if all(g.version(i, product.id) == g.version(i, last.id) for i in product.inputs):
        found[last.id] = (*product.inputs, {"causal": causal, "scale": scale})
