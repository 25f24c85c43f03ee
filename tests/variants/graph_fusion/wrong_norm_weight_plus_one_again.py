"""Folds 1 + w, as Gemma's norms have it, though the program says what is multiplied with.

breaks: 4
"""

from graph_ir import Builder, Graph, Node, rewrite


def fold_norm_weight(g: Graph) -> tuple[Graph, int]:
    left: dict[int, tuple[int, int]] = {}  # the mul → (x̂, w)
    for node in g.nodes:
        if node.op == "mul":
            for x, w in (node.inputs, node.inputs[::-1]):
                if _is_norm_weight(g, node, x, w):
                    left[node.id] = x, w
                    break
    folded: dict[tuple[int, int], int] = {}

    def moved(build: Builder, node: Node, inputs: list[int]) -> int:
        if node.op != "matmul" or node.inputs[0] not in left:
            number = build.copy(node, inputs)
            new[node.id] = number
            return number
        x, w = left[node.inputs[0]]
        matrix = g[node.inputs[1]]
        if (w, matrix.id) not in folded:
            names = g[w].attrs["name"], matrix.attrs["name"]
            weight, values = (g.constants[name] for name in names)
            product = None if weight is None or values is None else (1 + weight[:, None]) * values
            folded[w, matrix.id] = build.constant(
                f"{names[0]}·{names[1]}", product, matrix.shape, matrix.dtype
            )
        number = build.add("matmul", [new[x], folded[w, matrix.id]])
        new[node.id] = number
        return number

    new: dict[int, int] = {}
    return rewrite(g, moved), len(left)
