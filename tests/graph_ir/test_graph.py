"""The graph: what is refused, what order means, printing, binding, building."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graph_ir import Builder, Graph, GraphError, Tensor, rewrite, trace
from graph_ir.trace import bernoulli, exp, kv_write


def small() -> Graph:
    return trace(lambda p, x: exp(x) * p["w"], {"x": (2, 3)}, {"w": np.ones(3)})


def written() -> Graph:
    def program(p: dict[str, Tensor], cache: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
        early = cache.permute(1, 0)
        before = exp(early)  # reads the cache as it comes
        after = kv_write(cache, new, 1)
        return before, exp(early) + after.permute(1, 0)

    return trace(program, {"cache": (4, 2), "new": (1, 2)})


def test_printing() -> None:
    assert str(small()).splitlines() == [
        "%0 = input(name='x') : (2, 3) bf16",
        "%1 = constant(name='w') : (3,) bf16",
        "%2 = exp(%0) : (2, 3) bf16",
        "%3 = mul(%2, %1) : (2, 3) bf16",
        "return %3",
    ]


def test_roots_readers_and_what_must_have_run() -> None:
    g = written()
    ops = {node.id: node.op for node in g}
    assert [ops[i] for i in range(len(g))] == [
        *("input", "input", "permute", "exp", "kv_write", "exp", "permute", "add")
    ]
    assert [g.root(i) for i in (2, 4, 6)] == [0, 0, 0]
    assert g.mutated == {0}
    assert g.readers[0] == (3, 4, 5, 7)
    assert g.users[2] == (3, 5)
    # The write waits for who has read before; who reads after it waits for the write, also through
    # a view that is older.
    assert g.dependencies[4] == (0, 1, 3)
    assert g.dependencies[5] == (0, 4)
    assert g.dependencies[7] == (0, 4, 5)
    assert [g.version(2, at) for at in (3, 5, 7)] == [0, 1, 1]
    assert (g.nbytes(4), g.stored_bytes(4)) == (16, 4)


def test_a_rebuilt_graph_is_the_same_and_unused_nodes_go() -> None:
    g = written()
    assert str(rewrite(g, lambda build, node, inputs: build.copy(node, inputs))) == str(g)
    unused = trace(lambda p, x: (exp(x), p["w"] + x)[1], {"x": (3,)}, {"w": (3,), "v": (3,)})
    assert [node.op for node in unused] == ["input", "constant", "add"]
    assert list(unused.constants) == ["w"]


def test_draws_writes_and_inputs_stay_though_nobody_uses_them() -> None:
    def program(p: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        bernoulli(x, 0.5)
        kv_write(x, y, 0)
        exp(y)
        return y

    g = trace(program, {"x": (3, 2), "y": (1, 2)})
    assert [node.op for node in g] == ["input", "input", "bernoulli", "kv_write"]


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (2, {"id": 7}, "%7 = exp: stands at place 2"),
        (2, {"inputs": (3,)}, "operand %3 does not come before it"),
        (2, {"inputs": (0, 0)}, "it has 2 operands and needs 1"),
        (2, {"shape": (3, 2)}, r"is said to be \(3, 2\) bf16; its operands give \(2, 3\) bf16"),
        (3, {"dtype": "f32"}, r"is said to be .* f32; its operands give .* bf16"),
        (2, {"op": "cosh"}, "there is no operation 'cosh'"),
        (2, {"attrs": {"eps": 1}}, "it has attributes \\['eps'\\] and needs \\[\\]"),
        (1, {"attrs": {"name": "v", "shape": (3,), "dtype": "bf16"}}, "there is no constant 'v'"),
    ],
)
def test_check_says_what_is_wrong(place: int, change: dict[str, object], message: str) -> None:
    g = small()
    nodes = list(g.nodes)
    nodes[place] = replace(nodes[place], **change)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=message):
        replace(g, nodes=tuple(nodes)).check()


def test_check_looks_at_constants_and_outputs() -> None:
    g = small()
    with pytest.raises(GraphError, match=r"constant 'w' has shape \(4,\), the node \(3,\)"):
        replace(g, constants={"w": np.ones(4)}).check()
    with pytest.raises(GraphError, match="output %9 is no node; there are 4"):
        replace(g, outputs=(9,)).check()


def test_building_refuses_what_does_not_fit() -> None:
    build = Builder()
    x = build.input("x", (2, 3), "f32")
    two = build.scalar(2)
    for call, message in [
        (lambda: build.add("add", [x, 9]), "operand %9 is no node; there are 2 so far"),
        (lambda: build.add("add", [two, two]), "all operands are literal numbers"),
        (lambda: build.add("matmul", [x, two]), "operand of pointwise operations only"),
        (lambda: build.add("matmul", [x, x]), r"the last axis of \(2, 3\) and the last but one"),
        (lambda: build.input("x", (2,), "f32"), "there is an input 'x' already"),
        (lambda: build.input("z", (0,), "f32"), "size 0 of axis 0"),
        (lambda: build.input("z", ("2S",), "f32"), "size '2S' of axis 0 is no name"),
        (lambda: build.input("z", (2,), "int4"), "there is no dtype 'int4'"),
        (lambda: build.constant("c", np.ones(3), (2,), "f32"), r"shape \(3,\), not \(2,\)"),
    ]:
        with pytest.raises(GraphError, match=message):
            call()
    view = build.add("reshape", [x], shape=(3, 2))
    with pytest.raises(GraphError, match="it would write through a view"):
        build.add("kv_write", [view, view], pos=0)


def test_names_of_constants_are_made_unique() -> None:
    build = Builder()
    numbers = [build.constant("c", None, (2,), "f32") for _ in range(3)]
    assert [build.nodes[i].attrs["name"] for i in numbers] == ["c", "c_2", "c_3"]


def test_sizes_with_names() -> None:
    g = trace(lambda p, x: exp(x).reshape("S", 2, 2).sum(), {"x": ("S", 4)})
    assert g[g.outputs[0]].shape == ("S", 2, 1)
    assert g.names() == {"S"}
    with pytest.raises(ValueError, match=r"size 'S' has no value yet; pass bind=\{'S': …\}"):
        g.nbytes(0)
    bound = g.bind({"S": 5}).check()
    assert (bound.nbytes(0), bound.names()) == (40, frozenset())
    assert g.bind(None) is g
