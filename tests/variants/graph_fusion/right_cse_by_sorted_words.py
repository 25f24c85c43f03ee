"""CSE in two sweeps: first each node's class, by a text of sorted words; then the first of each
class is built.
"""

from graph_ir import Builder, Graph


def cse(g: Graph) -> Graph:
    first: list[int] = []  # by node: the first that computes the same
    classes: dict[str, int] = {}
    for node in g.nodes:
        words = []
        for i in node.inputs:
            state = g.version(i, node.id) if node.computes else "any"
            words.append(f"%{first[i]} in state {state}")
        if node.op in ("add", "mul"):
            words.sort(reverse=True)
        words += [node.op, *sorted(f"{key}: {value!r}" for key, value in node.attrs.items())]
        kept = node.op == "input" or not node.spec.pure or node.id in g.mutated
        first.append(node.id if kept else classes.setdefault(", ".join(words), node.id))
    build = Builder(g)
    new: dict[int, int] = {}
    for node in g.nodes:
        if first[node.id] == node.id:
            new[node.id] = build.copy(node, [new[first[i]] for i in node.inputs])
    return build.finish([new[first[i]] for i in g.outputs])
