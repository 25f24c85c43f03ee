"""Stores a folded constant in the dtype of its first operand: bf16 · float32 becomes bf16.

breaks: 3
"""

import numpy as np
from graph_ir import Builder, Graph, Node, rewrite
from graph_ir.ops import Array


def constant_fold(g: Graph) -> tuple[Graph, int]:
    count = 0
    known: dict[int, Array | None] = {}  # new number → values; no entry: not constant

    def folded(build: Builder, node: Node, inputs: list[int]) -> int:
        nonlocal count
        if node.op == "scalar":
            number = build.copy(node, inputs)
            known[number] = np.asarray(node.attrs["value"])
            return number
        if node.op == "constant":
            number = build.copy(node, inputs)
            if node.id not in g.mutated:
                known[number] = build.constants[node.attrs["name"]]
            return number
        if node.kind == "leaf" or not all(i in known for i in inputs) or not inputs:
            return build.copy(node, inputs)
        arrays = [known[i] for i in inputs]
        named = any(isinstance(size, str) for size in node.shape)
        if node.kind == "view":
            number = build.copy(node, inputs)
            if not named:
                known[number] = _evaluated(node, arrays)
            return number
        larger = named or g.nbytes(node.id) > sum(
            g.nbytes(root) for root in {g.root(i) for i in node.inputs}
        )
        if larger or not node.spec.pure or node.id in g.mutated:
            return build.copy(node, inputs)
        count += 1
        values = _evaluated(node, arrays)
        first = build.nodes[inputs[0]].dtype  # wrong: the widest of all
        dtype = node.dtype if first == "weak" else first
        number = build.constant(f"folded_{node.op}", values, node.shape, dtype)
        known[number] = build.constants[build.nodes[number].attrs["name"]]
        return number

    return rewrite(g, folded), count
