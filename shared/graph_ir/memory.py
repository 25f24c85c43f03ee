"""Runs kernels, and measures what each loads and stores.

Between kernels values exist only in a memory: roots by number. A kernel finds there what earlier
kernels have stored, computes with what it has loaded and with its own values, and puts back what it
says it stores; the rest is gone. So a kernel that runs too early, or a value that nobody stored, is
an error here and not a number in a table, and bytes are counted where arrays are touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph_ir.dtypes import ITEMSIZE
from graph_ir.execute import evaluator, show, start
from graph_ir.graph import Graph, Node
from graph_ir.index_maps import IndexMaps
from graph_ir.kernels import Kernel
from graph_ir.layout import KernelError, layout
from graph_ir.ops import Array, Context


@dataclass(frozen=True)
class Measured:
    """What came out, and what it took.

    Attributes:
        outputs: the program's results.
        reads: bytes that each kernel loaded.
        writes: bytes that each kernel stored.
    """

    outputs: list[Array]
    reads: list[int]
    writes: list[int]


def run(
    graph: Graph,
    kernels: Sequence[Kernel],
    inputs: Mapping[str, Any],
    bind: Mapping[str, int] | None = None,
    seed: int = 0,
    rounding: bool = False,
) -> Measured:
    """The graph's outputs, computed kernel by kernel. Arguments are those of `execute`.

    Raises:
        KernelError: a kernel, or an output, needs a value that no earlier kernel has stored.
        ValueError: as `execute`.
    """
    memory, context = start(graph, inputs, bind, rounding)
    evaluate = evaluator(graph, context, seed, rounding)
    reads, writes = [], []
    for place, kernel in enumerate(kernels):
        where = f"kernel {place} ({kernel.label})"
        chip = _Chip(graph, memory, context, where)
        for node in kernel.nodes:
            operands = [chip.value(node, k) for k in range(node.spec.arity)]
            chip.values[node.id] = evaluate(node, operands)
            if node.spec.mutates is not None:  # in place: there is nothing to be put back
                chip.stored += operands[1].size * ITEMSIZE[node.dtype]
        reads.append(chip.loaded)
        writes.append(chip.store(kernel))
    outputs = []
    for i in graph.outputs:
        if graph.root(i) not in memory:
            raise KernelError(f"output %{i} needs %{graph.root(i)}, which no kernel has stored")
        outputs.append(show(graph, memory, i, context))
    return Measured(outputs, reads, writes)


class _Chip:
    """One kernel at work: its values, and bytes that it has loaded and stored so far."""

    def __init__(
        self, graph: Graph, memory: dict[int, Array], context: Context, where: str
    ) -> None:
        self.values: dict[int, Array] = {}
        self.loaded = self.stored = 0
        self._graph, self._memory, self._context, self._where = graph, memory, context, where
        self._roots: set[int] = set()

    def value(self, node: Node, k: int) -> Array:
        """An operand; counts its root unless it is loaded already, or only written to."""
        i = node.inputs[k]
        root = self._graph.root(i)
        if root in self.values:
            return show(self._graph, self.values, i, self._context)
        if root not in self._memory:
            raise KernelError(
                f"{self._where}: {node.op} %{node.id} needs %{root}, which no earlier kernel has "
                "stored"
            )
        if root not in self._roots and k != node.spec.mutates:
            self._roots.add(root)
            self.loaded += self._memory[root].size * ITEMSIZE[self._graph[root].dtype]
        return show(self._graph, self._memory, i, self._context)

    def store(self, kernel: Kernel) -> int:
        """Puts the kernel's outputs into memory; returns the bytes stored, in place or here."""
        for number in kernel.outputs:
            if number not in self.values:
                raise KernelError(f"{self._where}: it stores %{number}, which it has not computed")
            if self._graph.root(number) == number:
                self._memory[number] = self.values[number]
                self.stored += self.values[number].size * ITEMSIZE[self._graph[number].dtype]
        return self.stored


def check_kernels(graph: Graph, kernels: Sequence[Kernel]) -> None:
    """Looks whether these kernels, in this order, are the program, and each of them can run.

    A node may be in several kernels, if it is cheaper to compute it again than to load it; but not
    one that is random, or that writes to memory.

    Args:
        graph: one whose sizes all have values: that of the kernels.
        kernels: in the order in which they run.

    Raises:
        KernelError: a node is in none; is in two and must not be; cannot be in its kernel; runs
            before something that it depends on; or a kernel loads or stores something else than
            what it says, or not what others need.
    """
    maps = IndexMaps(graph)
    places: dict[int, list[int]] = {}
    for place, kernel in enumerate(kernels):
        layout(kernel, maps)
        for node in kernel.nodes:
            places.setdefault(node.id, []).append(place)
    for node in graph.nodes:
        copies = len(places.get(node.id, ()))
        if node.computes and not copies:
            raise KernelError(f"%{node.id} = {node.op} is in no kernel")
        if copies > 1 and not node.spec.pure:
            raise KernelError(f"%{node.id} = {node.op} is in {copies} kernels; it must run once")
    stored: dict[int, int] = {}  # root → place of the first kernel that stores it
    for place, kernel in enumerate(kernels):
        inside = {node.id for node in kernel.nodes}
        loads = _check_loads(graph, kernel, place, inside, places, stored)
        if loads != set(kernel.inputs) or len(loads) != len(kernel.inputs):
            raise KernelError(
                f"kernel {place} ({kernel.label}) says that it loads {_named(kernel.inputs)}; what "
                f"it needs is {_named(loads)}, each once"
            )
        for number in kernel.outputs:
            if number not in inside:
                raise KernelError(f"kernel {place} stores %{number}, which it does not compute")
            stored.setdefault(number, place)
        written = {node.id for node in kernel.nodes if node.spec.mutates is not None}
        if not written <= set(kernel.outputs) or len(set(kernel.outputs)) < len(kernel.outputs):
            raise KernelError(
                f"kernel {place} ({kernel.label}) stores a value twice, or not at all"
            )
    for root in graph.needed:
        if graph[root].computes and root not in stored:
            raise KernelError(f"an output shows %{root}, which no kernel stores")


def _check_loads(
    graph: Graph,
    kernel: Kernel,
    place: int,
    inside: set[int],
    places: Mapping[int, list[int]],
    stored: Mapping[int, int],
) -> set[int]:
    """The roots that a kernel has to load; KernelError if one is not there, or not yet or no longer
    what it has to be."""
    loads: set[int] = set()
    for node in kernel.nodes:
        where = f"kernel {place}: {node.op} %{node.id}"
        operands = {graph.root(i) for i in node.inputs}
        for k, i in enumerate(node.inputs):
            root = graph.root(i)
            if root in inside or graph[root].op == "scalar":
                continue
            if graph[root].computes and root not in stored:
                raise KernelError(f"{where} needs %{root}, which no earlier kernel has stored")
            if k != node.spec.mutates:
                loads.add(root)
        for d in graph.dependencies[node.id]:
            if d in operands or d in inside:
                continue
            if not places.get(d) or max(places[d]) >= place:
                raise KernelError(
                    f"{where} must run after %{d} = {graph[d].op}: one reads memory that the other "
                    "writes"
                )
    return loads


def _named(numbers: Sequence[int] | set[int]) -> str:
    return ", ".join(f"%{number}" for number in sorted(numbers)) or "nothing"
