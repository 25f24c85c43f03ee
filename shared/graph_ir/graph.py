"""The graph: nodes in the order in which the program ran them, each with what it computes.

    %0 = input(name='x') : (16, 128) bf16
    %1 = mul(%0, %0) : (16, 128) bf16
    return %1

A node is a number, an operation, the numbers of its operands, attributes, and the shape and dtype
of its result. Nothing changes once it is built: a pass reads one graph and builds another.

    build = Builder(graph)                    # the same constants
    new = {}                                  # old number → new number
    for node in graph.nodes:
        new[node.id] = build.copy(node, [new[i] for i in node.inputs])
    return build.finish([new[i] for i in graph.outputs])

**Order is part of the meaning.** Views and kv_write give no memory of their own: `graph.root(i)` is
the node whose memory holds the value i. A node that reads memory sees what the last kv_write before
it, in the order of the nodes, left there. So a pass may replace nodes where they stand; to move one
it has to look at `graph.dependencies`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from graph_ir.dtypes import ITEMSIZE
from graph_ir.ops import OPS, Array, Op, op
from graph_ir.sizes import Shape, Size, bound, numel


class GraphError(ValueError):
    """A graph is not as it must be; the message says which node, and what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of a program.

    Attributes:
        id: its number, which is its place in `Graph.nodes`.
        op: the operation's name; `spec` is what `graph_ir.ops` says of it.
        inputs: numbers of the operands, all lower than `id`.
        attrs: attributes by name, sorted: "eps", "shape", "pos", …
        shape: of the result.
        dtype: of the result.
    """

    id: int
    op: str
    inputs: tuple[int, ...]
    attrs: Mapping[str, Any]
    shape: Shape
    dtype: str

    @property
    def spec(self) -> Op:
        """Its operation."""
        return OPS[self.op]

    @property
    def kind(self) -> str:
        """The class of its operation: "leaf", "view", "pointwise", …"""
        return OPS[self.op].kind

    @property
    def computes(self) -> bool:
        """Whether a kernel has to run it: leaves and views need none."""
        return self.kind not in ("leaf", "view")

    def __str__(self) -> str:
        shown = {key: value for key, value in self.attrs.items() if key not in ("shape", "dtype")}
        words = [f"%{i}" for i in self.inputs] + [
            f"{key}={value!r}" for key, value in shown.items()
        ]
        shape = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"%{self.id} = {self.op}({', '.join(words)}) : ({shape}) {self.dtype}"


@dataclass(frozen=True, eq=False)
class Graph:
    """A program.

    Attributes:
        nodes: in the order of the program.
        outputs: numbers of the nodes that it returns.
        constants: arrays by name; None where only the shape is known.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    constants: Mapping[str, Array | None]

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __getitem__(self, number: int) -> Node:
        return self.nodes[number]

    def __str__(self) -> str:
        returned = ", ".join(f"%{i}" for i in self.outputs)
        return "\n".join([*map(str, self.nodes), f"return {returned}"])

    @cached_property
    def inputs(self) -> dict[str, Node]:
        """The input nodes by name."""
        return {node.attrs["name"]: node for node in self.nodes if node.op == "input"}

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each node the numbers of those that have it as an operand, each once, ascending."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for i in dict.fromkeys(node.inputs):
                users[i].append(node.id)
        return tuple(map(tuple, users))

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """For each node the number of the node whose memory holds its value."""
        roots: list[int] = []
        for node in self.nodes:
            if node.kind == "view":
                roots.append(roots[node.inputs[0]])
            elif node.spec.mutates is not None:
                roots.append(roots[node.inputs[node.spec.mutates]])
            else:
                roots.append(node.id)
        return tuple(roots)

    def root(self, number: int) -> int:
        """The number of the node whose memory holds this value: through views and kv_write."""
        return self.roots[number]

    @cached_property
    def mutated(self) -> frozenset[int]:
        """Roots whose memory some node changes."""
        return frozenset(
            self.roots[node.id] for node in self.nodes if node.spec.mutates is not None
        )

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each root the nodes that compute with it, through whatever views: ascending."""
        readers: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            if node.computes:
                for root in dict.fromkeys(self.roots[i] for i in node.inputs):
                    readers[root].append(node.id)
        return tuple(map(tuple, readers))

    @cached_property
    def _writes(self) -> dict[int, list[int]]:
        writes: dict[int, list[int]] = {}
        for node in self.nodes:
            if node.spec.mutates is not None:
                writes.setdefault(self.roots[node.id], []).append(node.id)
        return writes

    def version(self, number: int, at: int) -> int:
        """How often the memory of this value has been changed by nodes before number `at`."""
        return bisect_left(self._writes.get(self.roots[number], ()), at)

    @cached_property
    def dependencies(self) -> tuple[tuple[int, ...], ...]:
        """For each node that computes, the nodes that must have run: each once, ascending.

        The roots of its operands, leaves included; the last node before it that changed one of
        them; and, if it changes memory itself, all that read the memory since then.
        """
        found: list[tuple[int, ...]] = []
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        for node in self.nodes:
            if not node.computes:
                found.append(())
                continue
            needed: set[int] = set()
            for i in node.inputs:
                root = self.roots[i]
                needed.add(root)
                if root in writer:
                    needed.add(writer[root])
                if root in self.mutated:
                    readers.setdefault(root, []).append(node.id)
            if node.spec.mutates is not None:
                root = self.roots[node.id]
                needed.update(i for i in readers[root] if i != node.id)
                readers[root] = []
                writer[root] = node.id
            found.append(tuple(sorted(needed)))
        return tuple(found)

    @cached_property
    def needed(self) -> frozenset[int]:
        """Roots whose memory an output shows: it must be there when the program ends."""
        return frozenset(self.roots[i] for i in self.outputs)

    def nbytes(self, number: int) -> int:
        """Bytes of a value, each element once: its number of elements times its dtype's size.

        Raises:
            ValueError: a size is a name without a value.
        """
        node = self.nodes[number]
        return numel(node.shape) * ITEMSIZE[node.dtype]

    def stored_bytes(self, number: int) -> int:
        """Bytes that a kernel writes to store this value: for kv_write those of the new rows."""
        node = self.nodes[number]
        if node.spec.mutates is None:
            return self.nbytes(number)
        new = self.nodes[node.inputs[1]]
        return numel(new.shape) * ITEMSIZE[node.dtype]

    def bind(self, bind: Mapping[str, int] | None) -> Graph:
        """The same graph with numbers in place of names of sizes, as far as `bind` has them."""
        if not bind:
            return self
        nodes = []
        for node in self.nodes:
            attrs = dict(node.attrs)
            if "shape" in attrs:
                attrs["shape"] = bound(attrs["shape"], bind)
            nodes.append(replace(node, attrs=attrs, shape=bound(node.shape, bind)))
        return replace(self, nodes=tuple(nodes))

    def names(self) -> frozenset[str]:
        """Names of sizes that have no value."""
        return frozenset(s for node in self.nodes for s in node.shape if isinstance(s, str))

    def check(self) -> Graph:
        """Looks whether this is a program; returns it.

        Raises:
            GraphError: a node is not at its place, has operands that do not come before it or too
                few of them, a shape or dtype that its operation would not give, or a constant is
                missing or has another shape.
        """
        for place, node in enumerate(self.nodes):
            where = f"%{node.id} = {node.op}"
            if node.id != place:
                raise GraphError(f"{where}: stands at place {place}; its number must be its place")
            for i in node.inputs:
                if not 0 <= i < place:
                    raise GraphError(f"{where}: operand %{i} does not come before it")
            inferred = _infer(node.op, [self.nodes[i] for i in node.inputs], node.attrs, where)
            if inferred != (node.shape, node.dtype):
                raise GraphError(
                    f"{where}: is said to be {node.shape} {node.dtype}; its operands give "
                    f"{inferred[0]} {inferred[1]}"
                )
            if node.op == "constant":
                self._check_constant(node, where)
        for i in self.outputs:
            if not 0 <= i < len(self.nodes):
                raise GraphError(f"output %{i} is no node; there are {len(self.nodes)}")
        return self

    def as_data(self) -> dict[str, Any]:
        """The graph as plain data, from which `from_data` makes it again: what travels between
        processes of which one does not believe the other.
        """
        nodes = [
            [node.id, node.op, list(node.inputs), _plain(node.attrs), list(node.shape), node.dtype]
            for node in self.nodes
        ]
        return {
            "nodes": nodes,
            "outputs": list(self.outputs),
            "constants": dict(self.constants),
        }

    @classmethod
    def from_data(cls, data: Any) -> Graph:
        """The graph that `as_data` made plain data of, checked (`check`).

        Args:
            data: anything.

        Raises:
            GraphError: it is not the data of a program.
        """
        if not isinstance(data, dict) or data.keys() != {"nodes", "outputs", "constants"}:
            raise GraphError(f"a {type(data).__name__} is no graph")
        nodes, outputs, constants = data["nodes"], data["outputs"], data["constants"]
        if not (_whole_numbers(outputs) and isinstance(nodes, list)):
            raise GraphError("a graph's nodes are Nodes, and its outputs their numbers")
        if not isinstance(constants, dict) or not all(
            array is None or (isinstance(array, np.ndarray) and array.dtype in (float, bool))
            for array in constants.values()
        ):
            raise GraphError("a graph's constants are arrays of float64 or bool, or None, by name")
        graph = cls(tuple(map(_node, nodes)), tuple(outputs), constants)
        try:
            return graph.check()
        except (TypeError, KeyError, IndexError, OverflowError) as error:
            raise GraphError(f"an attribute is of the wrong type: {error}") from error

    def _check_constant(self, node: Node, where: str) -> None:
        name = node.attrs["name"]
        if name not in self.constants:
            raise GraphError(f"{where}: there is no constant {name!r}")
        array = self.constants[name]
        if array is not None and array.shape != node.shape:
            raise GraphError(
                f"{where}: constant {name!r} has shape {array.shape}, the node {node.shape}"
            )


class Builder:
    """Makes a graph, node after node.

    Args:
        like: a graph whose constants the new one may use.
    """

    def __init__(self, like: Graph | None = None) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Array | None] = dict(like.constants) if like is not None else {}
        self._inputs: set[str] = set()
        self._taken: dict[str, int] = {}

    def add(self, name: str, inputs: Sequence[int] = (), /, **attrs: Any) -> int:
        """Adds a node; returns its number.

        Args:
            name: of the operation.
            inputs: numbers of the operands.
            attrs: the operation's attributes.

        Raises:
            GraphError: there is no such operation, operands are missing or do not fit.
        """
        place = len(self.nodes)
        where = f"%{place} = {name}"
        for i in inputs:
            if not 0 <= i < place:
                raise GraphError(f"{where}: operand %{i} is no node; there are {place} so far")
        ordered = {key: attrs[key] for key in sorted(attrs)}
        shape, dtype = _infer(name, [self.nodes[i] for i in inputs], ordered, where)
        self.nodes.append(Node(place, name, tuple(inputs), ordered, shape, dtype))
        return place

    def copy(self, node: Node, inputs: Sequence[int]) -> int:
        """Adds a node like this one of another graph, with other operands; returns its number.

        Args:
            node: of another graph, or an earlier one of this.
            inputs: numbers of its operands here.

        Raises:
            GraphError: as `add`.
        """
        return self.add(node.op, inputs, **node.attrs)

    def scalar(self, value: float) -> int:
        """Adds a literal number."""
        return self.add("scalar", value=float(value))

    def input(self, name: str, shape: Sequence[Size], dtype: str) -> int:
        """Adds an input."""
        if name in self._inputs:
            raise GraphError(f"there is an input {name!r} already")
        number = self.add("input", name=name, shape=tuple(shape), dtype=dtype)
        self._inputs.add(name)
        return number

    def constant(self, name: str, array: Array | None, shape: Sequence[Size], dtype: str) -> int:
        """Adds a constant, under this name or, if it is taken, one with a number behind it.

        Args:
            name: what to call it.
            array: its values, kept in float64 (or bool); None where only the shape is known.
            shape: its shape.
            dtype: what it is stored in.
        """
        free, number = name, self._taken.get(name, 1)
        while free in self.constants:
            number += 1
            free = f"{name}_{number}"
        self._taken[name] = number
        kept = array
        if array is not None:
            kept = np.asarray(array, dtype=bool if dtype == "bool" else np.float64)
            if kept.shape != tuple(shape):
                raise GraphError(f"constant {name!r} has shape {kept.shape}, not {tuple(shape)}")
        self.constants[free] = kept
        return self.add("constant", name=free, shape=tuple(shape), dtype=dtype)

    def finish(self, outputs: Sequence[int]) -> Graph:
        """The graph, without what nobody needs: nodes that no output uses, unless they are inputs,
        random, or change memory; and constants that no node uses.
        """
        live = [node.op == "input" or not node.spec.pure for node in self.nodes]
        for i in outputs:
            live[i] = True
        for node in reversed(self.nodes):
            if live[node.id]:
                for i in node.inputs:
                    live[i] = True
        place: dict[int, int] = {}
        nodes: list[Node] = []
        for node in self.nodes:
            if live[node.id]:
                place[node.id] = len(nodes)
                inputs = tuple(place[i] for i in node.inputs)
                new = Node(len(nodes), node.op, inputs, node.attrs, node.shape, node.dtype)
                nodes.append(new)
        used = {node.attrs["name"] for node in nodes if node.op == "constant"}
        constants = {name: array for name, array in self.constants.items() if name in used}
        return Graph(tuple(nodes), tuple(place[i] for i in outputs), constants)


def _plain(value: Any) -> Any:
    """An attribute, or all of them: tuples, texts and Python's own numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, tuple | list) and all(type(value) is int for value in values)


def _node(data: Any) -> Node:
    """A node from plain data; GraphError if it is none. Whether it fits is for `check` to say."""
    match data:
        case [int(number), str(name), list(inputs), dict(attrs), list(shape), str(dtype)]:
            sizes = all(type(size) in (int, str) for size in shape)
            if sizes and _whole_numbers(inputs) and all(map(_is_attribute, attrs.values())):
                return Node(number, name, tuple(inputs), attrs, tuple(shape), dtype)
    raise GraphError(f"{data!r:.80} is no node")


def _is_attribute(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(type(item) in (int, str) for item in value)
    return type(value) in (bool, int, float, str)


def rewrite(graph: Graph, rule: Callable[[Builder, Node, list[int]], int]) -> Graph:
    """A new graph, node by node in the same order.

    Args:
        graph: the old one.
        rule: called with the new graph's builder, a node of the old graph, and the new numbers of
            its operands; returns the new number of its result. `build.copy(node, inputs)` keeps it.
    """
    build = Builder(graph)
    new: list[int] = []
    for node in graph.nodes:
        new.append(rule(build, node, [new[i] for i in node.inputs]))
    return build.finish([new[i] for i in graph.outputs])


def _infer(
    name: str, operands: Sequence[Node], attrs: Mapping[str, Any], where: str
) -> tuple[Shape, str]:
    """Shape and dtype of a result; GraphError where the operands or attributes do not fit."""
    try:
        spec = op(name)
        if len(operands) != spec.arity:
            raise ValueError(f"it has {len(operands)} operands and needs {spec.arity}")
        if sorted(attrs) != sorted(spec.attrs):
            raise ValueError(f"it has attributes {sorted(attrs)} and needs {sorted(spec.attrs)}")
        if spec.arity and all(node.dtype == "weak" for node in operands):
            raise ValueError("all operands are literal numbers; compute it in Python")
        if spec.kind != "pointwise" and any(node.dtype == "weak" for node in operands):
            raise ValueError("a literal number is an operand of pointwise operations only")
        if spec.mutates is not None and operands[spec.mutates].kind == "view":
            raise ValueError("it would write through a view; write the memory itself")
        shape = spec.shape(tuple(node.shape for node in operands), attrs)
        return shape, spec.dtype(tuple(node.dtype for node in operands), attrs)
    except ValueError as error:
        raise GraphError(f"{where}: {error}") from error
