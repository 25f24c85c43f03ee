"""Folds the weight into a matrix that others use, too, as a tied head does: it is there twice
then.

breaks: 4
"""

from graph_ir import Graph, Node
from graph_ir.dtypes import promote


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
            or matrix.dtype != promote((weight.dtype, matrix.dtype))
            or matrix.id in g.mutated
        ):
            return False
    changing = {g.root(x), w, node.id} & g.mutated
    return bool(users) and not changing
