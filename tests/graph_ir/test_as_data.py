"""Graphs and kernels as plain data, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_ir import Graph, GraphError, Kernel, LayerCfg, decode_layer, trace
from hypothesis import given, settings

from tests.graph_ir.programs import Sample, same, samples
from tests.graph_ir.solution import lab

CFG = LayerCfg(8, 2, 1, 4, 8)


def layer() -> Graph:
    cache, table = (1, "S", 4), (1, 1, 4)
    shapes = {"x": (1, 8), "k_cache": cache, "v_cache": cache, "cos": table, "sin": table}
    return trace(decode_layer(CFG, "P"), shapes, CFG.shapes())


@settings(max_examples=40, deadline=None)
@given(sample=samples(dtypes=("f64", "bf16")))
def test_a_graph_there_and_back(sample: Sample) -> None:
    again = Graph.from_data(sample.graph.as_data())
    assert str(again) == str(sample.graph)
    assert same(sample.run(again), sample.run())


def test_sizes_may_be_names_and_constants_unknown() -> None:
    again = Graph.from_data(layer().as_data())
    assert str(again) == str(layer())
    assert again.constants == dict.fromkeys(CFG.shapes())


def test_numbers_of_numpy_become_pythons() -> None:
    g = trace(lambda p, x: x * 2, {"x": (3,)})
    g.nodes[1].attrs["value"] = np.float64(2)  # type: ignore[index]
    (data,) = [node for node in g.as_data()["nodes"] if node[1] == "scalar"]
    assert type(data[3]["value"]) is float


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: None, "a NoneType is no graph"),
        (lambda d: d | {"more": 1}, "a dict is no graph"),
        (lambda d: d | {"outputs": [1.0]}, "outputs their numbers"),
        (lambda d: d | {"outputs": [99]}, "output %99 is no node"),
        (lambda d: d | {"nodes": 3}, "nodes are Nodes"),
        (lambda d: d | {"nodes": [[0]]}, "is no node"),
        (lambda d: d | {"nodes": [*d["nodes"][:-1], [2, "mul", [0, 9], {}, [3], "bf16"]]}, "%9"),
        (lambda d: d | {"nodes": [[0, "input", [], {"name": 1}, [3], "bf16"]]}, "has attributes"),
        (lambda d: d | {"nodes": [[0, "permute", [], {"axes": [1]}, [3], "bf16"]]}, "is no node"),
        (lambda d: d | {"constants": {"w": [1.0]}}, "constants are arrays"),
        (lambda d: d | {"constants": {"w": np.ones(3, np.float32)}}, "constants are arrays"),
    ],
)
def test_what_is_no_graph(change: Any, message: str) -> None:
    g = trace(lambda p, x: x * 2, {"x": (3,)})
    with pytest.raises(GraphError, match=message):
        Graph.from_data(change(g.as_data()))


def test_an_attribute_of_the_wrong_type() -> None:
    data = trace(lambda p, x: x.permute(0), {"x": (3,)}).as_data()
    data["nodes"][1][3]["axes"] = 7
    with pytest.raises(GraphError, match="wrong type"):
        Graph.from_data(data)


def test_a_kernel_there_and_back() -> None:
    g = layer().bind({"S": 4})
    for kernel in lab.fuse(g):
        again = Kernel.from_data(g, kernel.as_data())
        assert str(again) == str(kernel)
        assert (again.inputs, again.outputs) == (kernel.inputs, kernel.outputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "magic"}, "no kernel of kind 'magic'"),
        ({"nodes": [99]}, "99 is not the number of a node"),
        ({"nodes": 1}, "nodes of a kernel is a int"),
        ({"inputs": ["x"]}, "'x' is not the number"),
        ({"more": 1}, "a dict is no kernel"),
    ],
)
def test_what_is_no_kernel(change: dict[str, Any], message: str) -> None:
    g = trace(lambda p, x: x * 2, {"x": (3,)})
    (kernel,) = lab.fuse(g)
    with pytest.raises(ValueError, match=message):
        Kernel.from_data(g, kernel.as_data() | change)
