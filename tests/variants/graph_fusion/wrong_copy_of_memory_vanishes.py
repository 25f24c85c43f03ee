"""Takes the cache for its copy cache · 1, which still has to be what it was after a kv_write.

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
        # −x is the negative of x until somebody writes to it: then it is not looked through.
        through = [i for i in inputs if build.nodes[i].op in ("neg", "cast")]
        if node.kind != "view" and any(written[i] for i in through):
            found = None
        # An operand's operand is read later than it was: memory that changes must not be between.
        if isinstance(found, int):
            other = build.nodes[found]
            same = (other.shape, other.dtype) == (node.shape, node.dtype)
            if same:
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
