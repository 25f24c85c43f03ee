"""Kernels that cannot be, or do not do what they say, are refused; what they move is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from graph_ir import H100, Graph, Kernel, Tensor, graph_cost, kernel_time, trace
from graph_ir.layout import KernelError, layout
from graph_ir.memory import check_kernels, run
from graph_ir.trace import bernoulli, exp, kv_write, rot_pairs, softmax

P = dict[str, Tensor]


def kernel(g: Graph, kind: str, nodes: Sequence[int], loads: Sequence[int], stores: Sequence[int]):
    return Kernel(g, kind, tuple(g[i] for i in nodes), tuple(loads), tuple(stores))


def chain() -> Graph:
    """%1 = exp(%0), %2 = −%1, %3 = Σ %2."""
    return trace(lambda p, x: (-exp(x)).sum(), {"x": (4, 6)}, dtype="f32")


def test_what_is_measured_is_what_was_said() -> None:
    g = chain()
    x = np.ones((4, 6))
    apart = [
        kernel(g, "pointwise", [1], [0], [1]),
        kernel(g, "pointwise", [2], [1], [2]),
        kernel(g, "rowwise", [3], [2], [3]),
    ]
    together = [kernel(g, "rowwise", [1, 2, 3], [0], [3])]
    for kernels in (apart, together):
        check_kernels(g, kernels)
        measured = run(g, kernels, {"x": x})
        assert measured.reads == [k.reads for k in kernels]
        assert measured.writes == [k.writes for k in kernels]
        assert measured.outputs[0] == pytest.approx(np.full((4, 1), -6 * np.e))
    assert [sum(run(g, k, {"x": x}).reads) for k in (apart, together)] == [3 * 96, 96]


def test_a_value_computed_twice_is_allowed_a_draw_is_not() -> None:
    g = chain()
    again = [
        kernel(g, "pointwise", [1, 2], [0], []),
        kernel(g, "rowwise", [1, 2, 3], [0], [3]),
    ]
    check_kernels(g, again)
    drawn = trace(lambda p, x: bernoulli(x, 0.5) * x, {"x": (2,)})
    twice = [kernel(drawn, "opaque", [1], [], [1])] * 2
    with pytest.raises(KernelError, match=r"%1 = bernoulli is in 2 kernels; it must run once"):
        check_kernels(drawn, [*twice, kernel(drawn, "pointwise", [2], [0, 1], [2])])


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([("rowwise", [1, 3], [0], [3])], "%2 = neg is in no kernel"),
        ([("rowwise", [2, 3], [1], [3]), ("pointwise", [1], [0], [1])], "needs %1, which no earl"),
        (
            [("pointwise", [1], [0], [1]), ("rowwise", [2, 3], [1, 0], [3])],
            "says that it loads %0, %1; what it needs is %1",
        ),
        ([("rowwise", [1, 2, 3], [0, 0], [3])], "each once"),
        ([("rowwise", [1, 2, 3], [], [3])], "it loads nothing; what it needs is %0"),
        ([("rowwise", [1, 2, 3], [0], [])], "an output shows %3, which no kernel stores"),
        ([("rowwise", [1, 2, 3], [0], [3, 3])], "stores a value twice"),
        ([("pointwise", [1, 2], [0], [3])], "in no kernel"),
        ([("pointwise", [1, 2, 3], [0], [3])], "sum %3 is in a pointwise kernel"),
        ([("rowwise", [1, 2], [0], [2]), ("rowwise", [3], [2], [3])], "has reductions, this has n"),
        ([("rowwise", [2, 1, 3], [0], [3])], "comes only later in the kernel"),
        ([("opaque", [1, 2, 3], [0], [3])], "a kernel of kind opaque is one opaque node, alone"),
        ([("matmul", [1, 2, 3], [0], [3])], "a matmul kernel has one product, but this 0"),
    ],
)
def test_kernels_of_a_chain_that_are_refused(
    kernels: list[tuple[str, list[int], list[int], list[int]]], message: str
) -> None:
    g = chain()
    with pytest.raises(KernelError, match=message):
        check_kernels(g, [kernel(g, *words) for words in kernels])


@pytest.mark.parametrize(
    ("fn", "kind", "nodes", "message"),
    [
        (lambda p, x: (lambda y: y + y.permute(1, 0))(-x), "pointwise", [1, 3], "in another order"),
        (lambda p, x: exp((-x).expand(2, 4, 4)), "pointwise", [1, 3], "goes through 16"),
        (lambda p, x: x - x.max().permute(1, 0), "rowwise", [1, 3], "it is used across rows"),
        (
            lambda p, x: x.max() * 1 + x.sum().reshape(1, 4),
            "rowwise",
            [1, 3, 4, 6],
            "it is used across rows",
        ),
        (lambda p, x: (-x) @ x, "matmul", [1, 2], "must be complete before a product begins"),
        (lambda p, x: -(x @ x).reshape(4, 4).permute(1, 0), "matmul", [1, 4], "in another order"),
        (lambda p, x: rot_pairs((x @ x).reshape(2, 8)), "matmul", [1, 3], "rows of 8 whole"),
        (lambda p, x: softmax(-x), "pointwise", [1, 2], "is composite: it does not go into"),
        (lambda p, x: x.sum().permute(1, 0) + x.reshape(2, 8).sum(), "rowwise", [1, 4], "4 rows"),
    ],
)
def test_nodes_that_cannot_be_in_one_kernel(
    fn: Callable[..., Tensor], kind: str, nodes: list[int], message: str
) -> None:
    g = trace(fn, {"x": (4, 4)})
    assert all(g[i].computes for i in nodes), str(g)
    with pytest.raises(KernelError, match=message):
        layout(kernel(g, kind, nodes, [0], nodes[-1:]))


def test_order_of_writes_and_reads() -> None:
    def program(p: P, cache: Tensor, new: Tensor) -> tuple[Tensor, ...]:
        before = exp(cache)
        kv_write(cache, new, 0)
        return before, -cache

    g = trace(program, {"cache": (4, 2), "new": (1, 2)})
    early = kernel(g, "pointwise", [2], [0], [2])
    write = kernel(g, "opaque", [3], [1], [3])
    late = kernel(g, "pointwise", [4], [0], [4])
    check_kernels(g, [early, write, late])
    for wrong in ([write, early, late], [early, late, write]):
        with pytest.raises(KernelError, match="one reads memory that the other writes"):
            check_kernels(g, wrong)
    with pytest.raises(KernelError, match="stores a value twice, or not at all"):
        check_kernels(g, [early, replace(write, outputs=()), late])
    measured = run(g, [early, write, late], {"cache": np.ones((4, 2)), "new": np.ones((1, 2))})
    assert (measured.reads, measured.writes) == ([16, 4, 16], [16, 4, 16])


def test_running_finds_what_was_not_stored() -> None:
    g = chain()
    with pytest.raises(KernelError, match=r"kernel 0 \(neg\): neg %2 needs %1"):
        run(g, [kernel(g, "pointwise", [2], [1], [2])], {"x": np.ones((4, 6))})
    with pytest.raises(KernelError, match="output %3 needs %3, which no kernel has stored"):
        run(g, [kernel(g, "rowwise", [1, 2, 3], [0], [])], {"x": np.ones((4, 6))})
    with pytest.raises(KernelError, match="it stores %2, which it has not computed"):
        run(g, [kernel(g, "pointwise", [1], [0], [2])], {"x": np.ones((4, 6))})


def test_a_roofline_and_launches() -> None:
    g = trace(lambda p, x: exp(x @ p["w"]), {"x": (512, 1024)}, {"w": (1024, 2048)})
    (product, power) = (
        kernel(g, "matmul", [2], [0, 1], [2]),
        kernel(g, "pointwise", [3], [2], [3]),
    )
    assert product.flops == (2 * 512 * 1024 * 2048, 0)
    assert power.flops == (0, 512 * 2048)
    moved = 2 * (512 * 1024 + 1024 * 2048 + 512 * 2048)
    assert product.reads + product.writes == moved
    assert kernel_time(product) == max(2 * 512 * 1024 * 2048 / 989e12, moved / 3.35e12)
    assert kernel_time(power) == 2 * 2 * 512 * 2048 / 3.35e12
    cost = graph_cost([product, power])
    assert cost["kernels"] == 2
    assert cost["bytes"] == moved + 4 * 512 * 2048
    assert cost["flops"] == 2 * 512 * 1024 * 2048 + 512 * 2048
    assert cost["t"] == kernel_time(product) + kernel_time(power)
    assert cost["t_total"] == cost["t"] + 2 * H100.launch == cost["t"] + 8e-6
    # Arithmetic of both kinds is done one after the other.
    both = kernel(g, "matmul", [2, 3], [0, 1], [3])
    slow = replace(H100, bw=1e30)
    assert kernel_time(both, slow) == both.flops[0] / 989e12 + both.flops[1] / 67e12
    assert str(both) == "matmul: matmul w + exp (5,242,880 B read, 2,097,152 B written)"
