"""Each pass, and the pipeline, on random programs: what comes out is what came out before."""

from __future__ import annotations

import numpy as np
import pytest
from graph_ir import Graph
from graph_ir.memory import check_kernels, run
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.graph_ir.programs import Sample, same, samples
from tests.graph_ir.solution import lab

EXACT = {
    "decompose": lab.decompose,
    "cse": lab.cse,
    "constant_fold": lambda g: lab.constant_fold(g)[0],
    "simplify": lambda g: lab.simplify(g)[0],
}


def exact_pipeline(g: Graph) -> Graph:
    for name in ("decompose", "cse", "constant_fold", "simplify"):
        g = EXACT[name](g)
    return g


def signature(g: Graph) -> list[tuple[object, ...]]:
    return [(g[i].shape, g[i].dtype) for i in g.outputs]


@pytest.mark.parametrize("name", list(EXACT))
@settings(max_examples=120, deadline=None)
@given(sample=samples(dtypes=("f64", "f32", "bf16")))
def test_a_pass_keeps_every_bit(name: str, sample: Sample) -> None:
    after = EXACT[name](sample.graph).check()
    assert signature(after) == signature(sample.graph)
    assert same(sample.run(after), sample.run())


@settings(max_examples=120, deadline=None)
@given(sample=samples(dtypes=("f64", "f32", "bf16"), steps=25))
def test_the_exact_passes_together_keep_every_bit(sample: Sample) -> None:
    after = exact_pipeline(sample.graph).check()
    assert signature(after) == signature(sample.graph)
    assert same(sample.run(after), sample.run())
    assert len(exact_pipeline(after)) <= len(after)


@pytest.mark.parametrize("name", ["cse", "simplify"])
@settings(max_examples=80, deadline=None)
@given(sample=samples(dtypes=("f32", "bf16", "f16")))
def test_rounding_stays_where_it_was(name: str, sample: Sample) -> None:
    after = EXACT[name](sample.graph)
    assert same(sample.run(after, rounding=True), sample.run(rounding=True))


@pytest.mark.parametrize("name", ["fold_norm_weight", "match_attention"])
@settings(max_examples=80, deadline=None)
@given(sample=samples(special=False))
def test_passes_that_reorder_sums(name: str, sample: Sample) -> None:
    after, count = getattr(lab, name)(sample.graph)
    after.check()
    assert signature(after) == signature(sample.graph)
    expected = sample.run()
    if not count:
        assert same(sample.run(after), expected)
        return
    assume(all(np.all(np.isfinite(array)) for array in expected))
    for a, b in zip(sample.run(after), expected, strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("enable", [False, True])
@settings(max_examples=150, deadline=None)
@given(sample=samples(steps=25, dtypes=("f64", "bf16")), decomposed=st.booleans())
def test_kernels_compute_the_program_and_move_what_they_say(
    enable: bool, sample: Sample, decomposed: bool
) -> None:
    g = exact_pipeline(sample.graph) if decomposed else sample.graph
    kernels = lab.fuse(g, enable=enable)
    check_kernels(g, kernels)
    given = sample.copies()
    measured = run(g, kernels, given, seed=5)
    assert same([*measured.outputs, *given.values()], sample.run())
    assert measured.reads == [kernel.reads for kernel in kernels]
    assert measured.writes == [kernel.writes for kernel in kernels]
    nodes = [node.id for kernel in kernels for node in kernel.nodes]
    assert sorted(nodes) == [node.id for node in g if node.computes]


@settings(max_examples=80, deadline=None)
@given(sample=samples(steps=25))
def test_fusing_moves_no_more_bytes(sample: Sample) -> None:
    g = exact_pipeline(sample.graph)
    apart, together = lab.fuse(g, enable=False), lab.fuse(g)
    assert len(together) <= len(apart)
    moved = [sum(k.reads + k.writes for k in kernels) for kernels in (apart, together)]
    assert moved[1] <= moved[0]
