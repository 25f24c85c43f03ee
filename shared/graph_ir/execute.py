"""Runs a graph node by node: what the program means, against which every pass is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graph_ir.dtypes import rounded
from graph_ir.graph import Graph, Node
from graph_ir.ops import Array, Context


def execute(
    graph: Graph,
    inputs: Mapping[str, Any],
    bind: Mapping[str, int] | None = None,
    seed: int = 0,
    rounding: bool = False,
) -> list[Array]:
    """The graph's outputs.

    Args:
        graph: a program whose constants all have values.
        inputs: arrays by name. Those that the program writes (a KV cache) must be float64 arrays,
            and are written in place.
        bind: values of names that no input's shape tells: {"P": 7}.
        seed: of random operations. The first in the program draws the first numbers, and so on.
        rounding: round every result to its node's dtype. Else all is computed in float64, whatever
            the dtypes, so that a wrong rewrite shows as a difference that no rounding explains.

    Returns:
        An array for each output.

    Raises:
        ValueError: an input is missing, is too many or has another shape, a constant has no
            values, or a name has two values or none.
    """
    values, context = start(graph, inputs, bind, rounding)
    evaluate = evaluator(graph, context, seed, rounding)
    memory = dict(values)
    for node in graph.nodes:
        if node.computes:
            memory[node.id] = evaluate(node, [show(graph, memory, i, context) for i in node.inputs])
    return [show(graph, memory, i, context) for i in graph.outputs]


def start(
    graph: Graph, inputs: Mapping[str, Any], bind: Mapping[str, int] | None, rounding: bool
) -> tuple[dict[int, Array], Context]:
    """The leaves' arrays by node, and the values of names: those of `bind` and of inputs' shapes.

    Raises:
        ValueError: as `execute`.
    """
    context = Context(bind=dict(bind or {}))
    for name in inputs:
        if name not in graph.inputs:
            raise ValueError(f"the program has no input {name!r}; it has {', '.join(graph.inputs)}")
    values: dict[int, Array] = {}
    for node in graph.nodes:
        if node.kind != "leaf":
            continue
        if node.op == "scalar":
            values[node.id] = np.asarray(node.attrs["value"], dtype=np.float64)
            continue
        array = _given(graph, node, inputs)
        if node.id in graph.mutated and node.op == "input":
            if not isinstance(array, np.ndarray) or array.dtype != np.float64:
                raise ValueError(
                    f"input {node.attrs['name']!r} is written in place; give a float64 array"
                )
            values[node.id] = array
        else:
            array = np.asarray(array, dtype=bool if node.dtype == "bool" else np.float64)
            values[node.id] = rounded(array, node.dtype) if rounding else array
            if node.id in graph.mutated:
                values[node.id] = values[node.id].copy()
        _learn_sizes(node, values[node.id], context)
    return values, context


def _given(graph: Graph, node: Node, inputs: Mapping[str, Any]) -> Any:
    name = node.attrs["name"]
    if node.op == "input":
        if name not in inputs:
            raise ValueError(f"input {name!r} of shape {node.shape} is missing")
        return inputs[name]
    array = graph.constants[name]
    if array is None:
        raise ValueError(
            f"constant {name!r} has a shape but no values; to run the graph, trace it with arrays"
        )
    return array


def _learn_sizes(node: Node, array: Array, context: Context) -> None:
    name, bind = node.attrs["name"], dict(context.bind)
    if array.ndim != len(node.shape):
        raise ValueError(f"{name!r} has shape {array.shape}; the program takes {node.shape}")
    for size, actual in zip(node.shape, array.shape, strict=True):
        expected = bind.setdefault(size, actual) if isinstance(size, str) else size
        if expected != actual:
            known = f" with {size} = {expected}" if isinstance(size, str) else ""
            raise ValueError(
                f"{name!r} has shape {array.shape}; the program takes {node.shape}{known}"
            )
    context.bind = bind


def show(graph: Graph, memory: Mapping[int, Array], number: int, context: Context) -> Array:
    """A value as its node's view of what its root's memory holds *now*.

    Views are taken at each use: numpy's reshape may copy, and a copy would not see a later write.
    """
    chain = []
    node = graph[number]
    while node.id not in memory or node.spec.mutates is not None:
        if node.kind == "view":
            chain.append(node)
            node = graph[node.inputs[0]]
        elif node.spec.mutates is not None:
            node = graph[node.inputs[node.spec.mutates]]
        else:
            raise KeyError(node.id)
    value = memory[node.id]
    for view in reversed(chain):
        value = view.spec.evaluate([value], view.attrs, context)
    return value


def evaluator(
    graph: Graph, context: Context, seed: int, rounding: bool
) -> Callable[[Node, list[Array]], Array]:
    """A function that computes a node's result from its operands' arrays."""
    random = [node.id for node in graph.nodes if node.spec.random]
    ordinal = {number: k for k, number in enumerate(random)}

    def evaluate(node: Node, operands: list[Array]) -> Array:
        if node.spec.random:
            context.draw = np.random.default_rng([seed, ordinal[node.id]])
        # ∞ and NaN are results like others here; whether they are meant is for the caller to say.
        with np.errstate(all="ignore"):
            result = node.spec.evaluate(operands, node.attrs, context)
        if node.spec.mutates is not None:
            return result
        if rounding:
            return rounded(result, node.dtype)
        return result

    return evaluate
