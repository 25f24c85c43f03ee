"""Takes what was read before a kv_write for what would be read after it.

breaks: 2
"""

from graph_ir import Builder, Graph, Node, rewrite


def cse(g: Graph) -> Graph:
    seen: dict[object, int] = {}

    def first_of_its_kind(build: Builder, node: Node, inputs: list[int]) -> int:
        if not node.spec.pure or node.id in g.mutated or node.op == "input":
            return build.copy(node, inputs)
        operands = list(inputs)  # wrong: and which version of each
        if node.op in ("add", "mul"):
            operands.sort()
        # repr tells 0.0 from −0.0, and 1 from 1.0 and True; == does not.
        key = (node.op, tuple(operands), repr(node.attrs))
        if key not in seen:
            seen[key] = build.copy(node, inputs)
        return seen[key]

    return rewrite(g, first_of_its_kind)
