"""The tests' expected values: layers as `graph_ir` traces them, and figures by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from graph_ir import LLAMA8B, Graph, LayerCfg, Node, decode_layer, execute, graph_cost, trace
from graph_ir.kernels import total_bytes
from graph_ir.layers import prefill_layer
from hypothesis import given, settings

from assignments.graph_fusion import oracle
from assignments.graph_fusion.oracle import Cost
from tests.graph_ir.programs import Sample, samples
from tests.graph_ir.solution import lab

T, S = 2048, 4096
CFG = LayerCfg(24, 6, 2, 4, 40)
FORMS = [oracle.EAGER, oracle.DECOMPOSED, oracle.OPTIMIZED, oracle.FLASH]


def prefill_of_graph_ir(cfg: LayerCfg, params: dict[str, np.ndarray]) -> Graph:
    return trace(prefill_layer(cfg, 5), {"x": (5, cfg.d)}, params)


@pytest.mark.parametrize("form", FORMS[:2])
def test_the_layer_is_graph_irs(form: oracle.Form) -> None:
    mine = oracle.prefill(CFG, 5, form, arrays=True)
    params = {name: mine.constants[name] for name in CFG.shapes()}
    theirs = prefill_of_graph_ir(CFG, params)  # type: ignore[arg-type]
    x = np.random.default_rng(1).standard_normal((5, CFG.d))
    results = [execute(g, {"x": x})[0] for g in (mine, theirs)]
    assert np.array_equal(*results)
    if form == oracle.EAGER:
        assert oracle.ops(mine) == oracle.ops(theirs)


def test_the_decode_layer_is_graph_irs() -> None:
    cache, table = (CFG.G, "S", CFG.dh), (1, 1, CFG.dh)
    shapes = {"x": (1, CFG.d), "k_cache": cache, "v_cache": cache, "cos": table, "sin": table}
    theirs = trace(decode_layer(CFG, "P"), shapes, CFG.shapes())
    mine = oracle.decode(CFG, oracle.EAGER)
    assert oracle.ops(mine) == oracle.ops(theirs)
    assert {n: (m.shape, m.dtype) for n, m in mine.inputs.items()} == {
        n: (m.shape, m.dtype) for n, m in theirs.inputs.items()
    }


@pytest.mark.parametrize("flash", [False, True])
def test_forms_mean_the_same(flash: bool) -> None:
    """With norms' weights of 1, which is what is left out."""
    form = oracle.Form(flash=flash)
    folded = oracle.prefill(CFG, 5, form, arrays=True)
    eager = oracle.prefill(CFG, 5, oracle.EAGER, arrays=True)
    eager.constants.update({n: a for n, a in folded.constants.items() if n.startswith("w")})  # type: ignore[attr-defined]
    eager.constants.update({n: np.ones(CFG.d) for n in ("attn_norm", "mlp_norm")})  # type: ignore[attr-defined]
    x = np.random.default_rng(2).standard_normal((5, CFG.d))
    results = [execute(g, {"x": x})[0] for g in (eager, folded)]
    assert np.max(np.abs(results[0] - results[1])) < 1e-12


class TestLlama8B:
    """The figures of the reference's tables, (kernels, bytes to 3 or 4 digits)."""

    @pytest.mark.parametrize(
        ("form", "prefill", "decode"),
        [(oracle.EAGER, (26, 3.62), (27, 0.4551)), (oracle.DECOMPOSED, (45, 5.81), (46, 0.4569))],
    )
    def test_unfused(self, form: oracle.Form, prefill: object, decode: object) -> None:
        cost = oracle.unfused(oracle.prefill(LLAMA8B, T, form))
        assert (cost.kernels, round(cost.bytes / 1e9, 2)) == prefill
        cost = oracle.unfused(oracle.decode(LLAMA8B, form).bind({"S": S}))
        assert (cost.kernels, round(cost.bytes / 1e9, 4)) == decode

    def test_fused(self) -> None:
        costs = [oracle.prefill_fused(LLAMA8B, T, flash) for flash in (False, True)]
        assert [c.kernels for c in costs] == [12, 10]
        assert [round(c.bytes / 1e9, 3) for c in costs] == [2.057, 0.975]
        costs = [oracle.decode_fused(LLAMA8B, S, flash) for flash in (False, True)]
        assert [(c.kernels, round(c.bytes / 1e9, 4)) for c in costs] == [(14, 0.4543), (12, 0.4533)]

    @pytest.mark.parametrize("flash", [False, True])
    def test_the_solution_fuses_to_these(self, flash: bool) -> None:
        form = oracle.Form(flash=flash)
        cost = graph_cost(lab.fuse(oracle.prefill(LLAMA8B, T, form)))
        assert Cost(cost["kernels"], cost["bytes"]) == oracle.prefill_fused(LLAMA8B, T, flash)
        cost = graph_cost(lab.fuse(oracle.decode(LLAMA8B, form), bind={"S": S}))
        assert Cost(cost["kernels"], cost["bytes"]) == oracle.decode_fused(LLAMA8B, S, flash)


@settings(max_examples=60, deadline=None)
@given(sample=samples(steps=25, dtypes=("f64", "bf16")))
def test_unfused_costs_what_kernels_of_one_node_do(sample: Sample) -> None:
    kernels = lab.fuse(sample.graph, enable=False)
    assert oracle.unfused(sample.graph) == Cost(len(kernels), total_bytes(kernels))


@pytest.mark.parametrize(
    ("cost", "share"),
    [
        (Cost(40, 1000), 0.0),
        (Cost(10, 400), 1.0),
        (Cost(25, 700), 0.5),
        (Cost(10, 1000), 0.5),
        (Cost(10, 340), 1.05),
        (Cost(13, 340), 1.0),
        (Cost(40, 1600), -0.5),
    ],
)
def test_share(cost: Cost, share: float) -> None:
    assert oracle.share(cost, Cost(40, 1000), Cost(10, 400)) == pytest.approx(share)


def test_live_leaves_out_what_nobody_needs() -> None:
    g = trace(lambda p, x: x * 2, {"x": (3,)})
    dead = Node(len(g), "neg", (0,), {}, (3,), "bf16")
    more = Graph((*g.nodes, dead), g.outputs, g.constants).check()
    assert oracle.ops(more) == {"mul": 1, "neg": 1}
    assert str(oracle.live(more)) == str(g)
