"""constant_fold and simplify in rounds, each on the graph of the round before, until there is
nothing left to be done.
"""

import numpy as np
from graph_ir import Builder, Graph, Node, rewrite
from graph_ir.ops import Array


def constant_fold(g: Graph) -> tuple[Graph, int]:
    counts = np.zeros(1, dtype=np.int64)
    while counts[-1] or len(counts) == 1:
        g, count = _round(g)
        counts = np.append(counts, count)
    return g, int(counts.sum())


def _round(g: Graph) -> tuple[Graph, int]:
    """Folds what has constants, literals, and views of constants as operands."""
    count = 0

    def values(number: int) -> list[Array | None]:
        """None for each constant without values; empty if it is no constant."""
        views: list[Node] = []
        while g[number].kind == "view":
            views.append(g[number])
            number = g[number].inputs[0]
        root = g[number]
        names = {size for view in views for size in view.shape if isinstance(size, str)}
        if root.op == "scalar":
            return [np.asarray(root.attrs["value"])]
        if root.op != "constant" or number in g.mutated or names:
            return []
        array = g.constants[root.attrs["name"]]
        for view in reversed(views):
            array = _evaluated(view, [array])
        return [array]

    def folded(build: Builder, node: Node, inputs: list[int]) -> int:
        nonlocal count
        found = [values(i) for i in node.inputs if node.computes and node.spec.pure]
        if not found or not all(found) or node.id in g.mutated:
            return build.copy(node, inputs)
        if any(isinstance(size, str) for size in node.shape):
            return build.copy(node, inputs)
        if g.nbytes(node.id) > sum(g.nbytes(root) for root in set(map(g.root, node.inputs))):
            return build.copy(node, inputs)
        count += 1
        result = _evaluated(node, [array for (array,) in found])
        return build.constant("known", result, node.shape, node.dtype)

    return rewrite(g, folded), count


def simplify(g: Graph) -> tuple[Graph, int]:
    g, count = _once(g)
    if not count:
        return g, 0
    g, more = simplify(g)
    return g, count + more


def _once(g: Graph) -> tuple[Graph, int]:
    count = 0
    written: dict[int, bool] = {}  # new number → whether its memory is changed anywhere

    def simplified(build: Builder, node: Node, inputs: list[int]) -> int:
        nonlocal count
        mine = g.root(node.id) in g.mutated
        found = _simpler(build, node, inputs)
        if node.kind != "view" and any(
            written[i] and build.nodes[i].op in ("neg", "cast") for i in inputs
        ):
            found = None
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
