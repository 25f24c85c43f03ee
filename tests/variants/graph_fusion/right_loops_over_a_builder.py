"""decompose and fold_norm_weight without `rewrite`: nodes that become others are found first,
then what is left is built in a loop.
"""

import numpy as np
from graph_ir import Builder, Graph


def decompose(g: Graph) -> Graph:
    build = Builder(g)
    new: list[int] = []

    def chain(x: int, *steps: tuple[str, int | None]) -> int:
        for name, other in steps:
            x = build.add(name, [x] if other is None else [x, other])
        return x

    for node in g.nodes:
        inputs = [new[i] for i in node.inputs]
        match node.op:
            case "rms_norm":
                x, weight = inputs
                width, eps = build.scalar(node.shape[-1]), build.scalar(node.attrs["eps"])
                steps = ("mul", x), ("sum", None), ("div", width), ("add", eps), ("rsqrt", None)
                new.append(chain(x, *steps, ("mul", x), ("mul", weight)))
            case "softmax":
                (x,) = inputs
                powers = chain(x, ("sub", chain(x, ("max", None))), ("exp", None))
                new.append(chain(powers, ("div", chain(powers, ("sum", None)))))
            case "silu":
                (x,) = inputs
                below = chain(x, ("neg", None), ("exp", None), ("add", build.scalar(1)))
                new.append(chain(x, ("div", below)))
            case _:
                new.append(build.copy(node, inputs))
    return build.finish([new[i] for i in g.outputs])


def fold_norm_weight(g: Graph) -> tuple[Graph, int]:
    left: dict[int, tuple[int, int]] = {}  # matmul → (x̂, w)
    count = 0
    for node in reversed(g.nodes):
        pairs = (node.inputs, node.inputs[::-1]) if node.op == "mul" else ()
        fitting = [(x, w) for x, w in pairs if _is_norm_weight(g, node, x, w)]
        if fitting:
            count += 1
            left.update(dict.fromkeys(g.users[node.id], fitting[0]))
    build = Builder(g)
    new: list[int] = []
    matrices: dict[tuple[int, int], int] = {}
    for node in g.nodes:
        inputs = [new[i] for i in node.inputs]
        if node.id in left:
            x, w = left[node.id]
            old = g[node.inputs[1]]
            if (w, old.id) not in matrices:
                diagonal, matrix = (g.constants[g[i].attrs["name"]] for i in (w, old.id))
                known = diagonal is not None and matrix is not None
                scaled = np.einsum("i,ij->ij", diagonal, matrix) if known else None
                matrices[w, old.id] = build.constant("scaled", scaled, old.shape, old.dtype)
            inputs = [new[x], matrices[w, old.id]]
        new.append(build.copy(node, inputs))
    return build.finish([new[i] for i in g.outputs]), count
