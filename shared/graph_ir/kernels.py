"""A kernel: nodes that run in one launch, what it loads from memory, and what it stores there.

Between loading and storing its values stay on the chip. So its price is what it loads and stores,
however many nodes it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graph_ir.graph import Graph, Node

#: What a kernel can be.
KINDS = ("pointwise", "rowwise", "matmul", "composite", "opaque")


@dataclass(frozen=True, eq=False)
class Kernel:
    """One launch.

    Attributes:
        graph: the program, with numbers for all sizes.
        kind: "pointwise"; "rowwise", with reductions of rows among its nodes; "matmul", one product
            and what is done to it before it is stored; "composite" and "opaque", always one node.
        nodes: what it computes, in the order of the program, without leaves and views.
        inputs: numbers of the values that it loads, each once: memory, so roots, not views of them.
        outputs: numbers of its nodes that it stores.
    """

    graph: Graph
    kind: str
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no kernel of kind {self.kind!r}; there are {KINDS}")

    def as_data(self) -> dict[str, Any]:
        """The kernel as plain data, without its graph: numbers of nodes, from which `from_data`
        makes it again.
        """
        return {
            "kind": self.kind,
            "nodes": [node.id for node in self.nodes],
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
        }

    @classmethod
    def from_data(cls, graph: Graph, data: Any) -> Kernel:
        """The kernel that `as_data` made plain data of, on a graph.

        Whether it can run is not looked at: `graph_ir.memory.check_kernels` does.

        Args:
            graph: the program, with numbers for all sizes.
            data: anything.

        Raises:
            ValueError: it is not the data of a kernel, or has numbers that no node of the graph
                has.
        """
        keys = ("kind", "nodes", "inputs", "outputs")
        if not isinstance(data, dict) or set(data) != set(keys):
            raise ValueError(f"a {type(data).__name__} is no kernel")
        for key in keys[1:]:
            if not isinstance(data[key], tuple | list):
                raise ValueError(f"{key} of a kernel is a {type(data[key]).__name__}, not a tuple")
            for number in data[key]:
                if type(number) is not int or not 0 <= number < len(graph):
                    raise ValueError(
                        f"{key} of a kernel: {number!r:.40} is not the number of a node; there are "
                        f"0 to {len(graph) - 1}"
                    )
        nodes, inputs, outputs = (tuple(data[key]) for key in keys[1:])
        return cls(graph, data["kind"], tuple(graph[number] for number in nodes), inputs, outputs)

    @cached_property
    def label(self) -> str:
        """Its operations: "matmul wq + mul + rot_pairs + mul + add"."""
        return " + ".join(self._word(node) for node in self.nodes)

    def _word(self, node: Node) -> str:
        if node.op == "matmul":
            weight = self.graph[self.graph.root(node.inputs[1])]
            if weight.op == "constant":
                return f"matmul {weight.attrs['name']}"
        return node.op

    @cached_property
    def reads(self) -> int:
        """Bytes that it loads."""
        return sum(self.graph.nbytes(number) for number in self.inputs)

    @cached_property
    def writes(self) -> int:
        """Bytes that it stores."""
        return sum(self.graph.stored_bytes(number) for number in self.outputs)

    @cached_property
    def flops(self) -> tuple[int, int]:
        """(of matrix products, others)."""
        products = others = 0
        for node in self.nodes:
            shapes = tuple(self.graph[i].shape for i in node.inputs)
            product, other = node.spec.flops(shapes, node.shape)
            products, others = products + product, others + other
        return products, others

    def __str__(self) -> str:
        return f"{self.kind}: {self.label} ({self.reads:,} B read, {self.writes:,} B written)"


def total_bytes(kernels: Sequence[Kernel]) -> int:
    """Bytes that all of them load and store."""
    return sum(kernel.reads + kernel.writes for kernel in kernels)
