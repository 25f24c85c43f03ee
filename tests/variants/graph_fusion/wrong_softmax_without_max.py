"""Writes softmax as exp(x) / Σ exp(x): ∞/∞ for scores above 709.

breaks: 1
"""

from graph_ir import Builder, Graph, Node, rewrite
from graph_ir.sizes import numel


def decompose(g: Graph) -> Graph:
    def written_out(build: Builder, node: Node, inputs: list[int]) -> int:
        x = inputs[0] if inputs else -1
        if node.op == "rms_norm":
            total = build.add("sum", [build.add("mul", [x, x])])
            mean = build.add("div", [total, build.scalar(numel(node.shape[-1:]))])
            shifted = build.add("add", [mean, build.scalar(node.attrs["eps"])])
            scaled = build.add("mul", [x, build.add("rsqrt", [shifted])])
            return build.add("mul", [scaled, inputs[1]])
        if node.op == "softmax":
            weights = build.add("exp", [x])  # wrong: x − max x
            return build.add("div", [weights, build.add("sum", [weights])])
        if node.op == "silu":
            powers = build.add("exp", [build.add("neg", [x])])
            return build.add("div", [x, build.add("add", [powers, build.scalar(1)])])
        return build.copy(node, inputs)

    return rewrite(g, written_out)
