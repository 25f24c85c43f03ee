"""Takes x for x + 0, though −0 + 0 is +0.

breaks: 3
"""

import math

from graph_ir import Builder, Node
from graph_ir.dtypes import promote


def _simpler(build: Builder, node: Node, inputs: list[int]) -> Replacement:
    below = [build.nodes[i] for i in inputs]
    if node.kind == "view":
        x, changes = below[0], dict(node.attrs)
        if x.op == node.op:
            if node.op == "permute":
                changes["axes"] = tuple(x.attrs["axes"][axis] for axis in node.attrs["axes"])
            first = build.nodes[x.inputs[0]]
            return first.id if _shows_all(node, first, changes) else (node.op, [first.id], changes)
        return x.id if _shows_all(node, x, changes) else None
    if node.op == "neg" and below[0].op == "neg":
        return below[0].inputs[0]
    if node.op == "cast":
        x = below[0]
        if x.dtype == node.dtype:
            return x.id
        if x.op == "cast":
            first = build.nodes[x.inputs[0]]
            wider = "bool" not in (first.dtype, x.dtype) and promote((first.dtype, x.dtype))
            return first.id if (first.dtype, x.dtype) == (node.dtype, wider) else None
        return None
    if node.op in ("maximum", "minimum") and inputs[0] == inputs[1]:
        return inputs[0]
    if node.op == "where" and inputs[1] == inputs[2]:
        return inputs[1]
    if node.op not in ("add", "sub", "mul", "div"):
        return None
    # What might stay is either operand, but of sub and div only the first.
    sides = [(0, 1), (1, 0)] if node.op in ("add", "mul") else [(0, 1)]
    for stays, goes in sides:
        x, y = below[stays], below[goes]
        if y.op == "scalar":
            value = y.attrs["value"]
            sign = math.copysign(1, value)
            neutral = {"mul": value == 1, "div": value == 1, "add": value == 0}
            if neutral.get(node.op, value == 0 and sign > 0):
                return x.id
        if y.op == "neg" and node.op in ("add", "sub") and x.op != "neg":
            return ("sub" if node.op == "add" else "add"), [x.id, y.inputs[0]], {}
    return None
