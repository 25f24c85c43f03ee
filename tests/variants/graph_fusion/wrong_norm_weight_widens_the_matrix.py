"""Folds a float32 weight into a matrix of bf16, which costs twice the bytes from then on.

breaks: 4
"""

from graph_ir import Builder, Graph, Node, rewrite
from graph_ir.dtypes import promote


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
            product = None if weight is None or values is None else weight[:, None] * values
            folded[w, matrix.id] = build.constant(
                f"{names[0]}·{names[1]}", product, matrix.shape, promote((g[w].dtype, matrix.dtype))
            )
        number = build.add("matmul", [new[x], folded[w, matrix.id]])
        new[node.id] = number
        return number

    new: dict[int, int] = {}
    return rewrite(g, moved), len(left)


def _is_norm_weight(g: Graph, node: Node, x: int, w: int) -> bool:
    weight, rows = g[w], g[x]
    fits = weight.op == "constant" and weight.shape == rows.shape[-1:] == node.shape[-1:]
    if not fits or rows.shape != node.shape or node.id in g.needed:
        return False
    users = set(g.users[node.id])
    if any(g[user].op != "matmul" or g[user].inputs[0] != node.id for user in users):
        return False
    for number in {g[user].inputs[1] for user in users}:
        matrix = g[number]
        if (
            matrix.op != "constant"
            or len(matrix.shape) != 2
            or matrix.id in g.needed
            or not users.issuperset(g.users[matrix.id])
            or matrix.id in g.mutated
        ):
            return False
    changing = {g.root(x), w, node.id} & g.mutated
    return bool(users) and not changing
