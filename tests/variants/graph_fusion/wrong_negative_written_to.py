"""Takes y + (−x) for y − x even where a kv_write has changed −x, which is not the negative of x
any more.

breaks: 3
"""

from graph_ir import Builder, Graph, Node, rewrite


def simplify(g: Graph) -> tuple[Graph, int]:
    count = 0
    written: dict[int, bool] = {}  # new number → whether its memory is changed anywhere

    def simplified(build: Builder, node: Node, inputs: list[int]) -> int:
        nonlocal count
        mine = g.root(node.id) in g.mutated
        found = _simpler(build, node, inputs)
        # An operand's operand is read later than it was: memory that changes must not be between.
        if isinstance(found, int):
            other = build.nodes[found]
            same = (other.shape, other.dtype) == (node.shape, node.dtype)
            if same and (node.kind == "view" or not (mine or written[found])):
                count += 1
                return found
        elif found is not None and not any(written[i] for i in found[1]):
            name, operands, attrs = found
            count += 1
            number = build.add(name, operands, **attrs)
            written[number] = mine
            return number
        number = build.copy(node, inputs)
        written[number] = mine
        return number

    return rewrite(g, simplified), count
