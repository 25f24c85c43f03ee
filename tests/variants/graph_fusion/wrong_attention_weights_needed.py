"""Matches where the probabilities are needed by others, which then compute them once more.

breaks: 5
"""

from graph_ir import Graph, Node
from graph_ir.dtypes import promote


def _attention(g: Graph, last: Node) -> tuple[int, int, float, bool] | None:
    def only(number: int, name: str) -> Node | None:
        """The node, if it is such an operation, has one user, and is not an output."""
        node = g[number]
        alone = number not in g.mutated
        return node if alone and node.op == name else None

    softmax = only(last.inputs[0], "softmax")
    if softmax is None:
        return None
    number, scale, causal = softmax.inputs[0], 1.0, False
    masked = only(number, "add")
    if masked is not None:
        for scores, mask in (masked.inputs, masked.inputs[::-1]):
            if _is_causal(g, mask, g[scores]):
                number, causal = scores, True
                break
        else:
            return None
    for name in ("mul", "div"):
        scaled = only(number, name)
        if scaled is not None:
            x, factor = scaled.inputs
            if name == "mul" and g[x].op == "scalar":
                x, factor = factor, x
            if g[factor].op != "scalar":
                return None
            value = g[factor].attrs["value"]
            if name == "div" and value == 0:
                return None
            number, scale = x, value if name == "mul" else 1 / value
            break
    product = only(number, "matmul")
    if product is None:
        return None
    q, transposed = product.inputs
    heads = [g[q].shape[:-2], g[transposed].shape[:-2], g[last.inputs[1]].shape[:-2]]
    moved = any(g.version(i, product.id) != g.version(i, last.id) for i in (q, transposed))
    dtype = promote((g[q].dtype, g[transposed].dtype, g[last.inputs[1]].dtype))
    if moved or heads[0] != heads[1] or heads[1] != heads[2] or dtype != last.dtype:
        return None
    return q, transposed, scale, causal
