"""Draws once for two random nodes that look alike: in a model, one dropout mask for all layers.

breaks: 2
"""

from graph_ir import Builder, Graph, Node, rewrite


def cse(g: Graph) -> Graph:
    seen: dict[object, int] = {}

    def first_of_its_kind(build: Builder, node: Node, inputs: list[int]) -> int:
        if node.spec.mutates is not None or node.id in g.mutated or node.op == "input":
            return build.copy(node, inputs)
        # A view shows memory as it is when somebody reads it: only those who read have a version.
        versions = [g.version(i, node.id) if node.computes else 0 for i in node.inputs]
        operands = list(zip(inputs, versions, strict=True))
        if node.op in ("add", "mul"):
            operands.sort()
        # repr tells 0.0 from −0.0, and 1 from 1.0 and True; == does not.
        key = (node.op, tuple(operands), repr(node.attrs))
        if key not in seen:
            seen[key] = build.copy(node, inputs)
        return seen[key]

    return rewrite(g, first_of_its_kind)
