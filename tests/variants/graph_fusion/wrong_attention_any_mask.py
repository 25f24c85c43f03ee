"""Takes every constant of the mask's shape for the causal mask.

breaks: 5
"""

from graph_ir import Graph, Node


def _is_causal(g: Graph, mask: int, scores: Node) -> bool:
    root = g[g.root(mask)]
    T_S = scores.shape[-2:]
    if root.op != "constant" or root.id in g.mutated or g[mask].shape[-2:] != T_S:
        return False
    return g.constants[root.attrs["name"]] is not None  # wrong: it may be any
