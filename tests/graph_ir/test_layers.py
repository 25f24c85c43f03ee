"""The layers, executed, against transformer_lab: the same mathematics by other code."""

from __future__ import annotations

import numpy as np
import pytest
from graph_ir import LLAMA8B, LayerCfg, decode_layer, execute, layer_params, prefill_layer, trace
from graph_ir.layers import rope_tables
from transformer_lab import Config, KVCache, rope_angles
from transformer_lab.model import attention, mlp

CFG = LayerCfg(24, 6, 2, 8, 40)
PARAMS = layer_params(CFG, seed=4)
MODEL = Config(
    n_layers=1,
    d_model=CFG.d,
    n_heads=CFG.H,
    n_kv_heads=CFG.G,
    d_head=CFG.dh,
    d_ff=CFG.f,
    vocab=2,
    max_seq=64,
    norm_eps=CFG.eps,
    rope_theta=CFG.theta,
)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def expected(x: np.ndarray, pos0: int, cache: KVCache | None) -> np.ndarray:
    """(T, d): the layer of transformer_lab on one sequence."""
    cos, sin = rope_angles(np.arange(pos0, pos0 + len(x)), CFG.dh, CFG.theta)
    start = 0 if cache is None else pos0
    h = x[None] + attention(PARAMS, MODEL, 0, x[None], cos, sin, start, cache)
    return (h + mlp(PARAMS, MODEL, h))[0]


@pytest.mark.parametrize(("T", "pos0"), [(1, 0), (7, 0), (5, 11)])
def test_prefill(T: int, pos0: int) -> None:
    x = numbers(T, CFG.d)
    graph = trace(prefill_layer(CFG, T, pos0), {"x": (T, CFG.d)}, PARAMS).check()
    (y,) = execute(graph, {"x": x})
    assert np.max(np.abs(y - expected(x, pos0, None))) < 1e-10
    assert list(graph.inputs) == ["x"]


def test_decode_token_after_token_writes_the_cache_in_place() -> None:
    T, more = 5, 4
    x = numbers(T + more, CFG.d, seed=1)
    cache = KVCache(MODEL, batch=1)
    expected(x[:T], 0, cache)
    cache.length = T
    graph = trace(
        decode_layer(CFG, "P"),
        {
            "x": (1, CFG.d),
            "k_cache": (CFG.G, "S", CFG.dh),
            "v_cache": (CFG.G, "S", CFG.dh),
            "cos": (1, 1, CFG.dh),
            "sin": (1, 1, CFG.dh),
        },
        PARAMS,
    ).check()
    whole_k, whole_v = (np.zeros((CFG.G, T + more, CFG.dh)) for _ in range(2))
    for whole, kept in zip((whole_k, whole_v), cache.read(0, T), strict=True):
        whole[:, :T] = kept[0].transpose(1, 0, 2)
    for P in range(T, T + more):
        # One graph for all lengths: S is what the caches' shapes say.
        k_cache, v_cache = whole_k[:, : P + 1], whole_v[:, : P + 1]
        cos, sin = rope_tables(CFG, 1, P)
        given = {"x": x[P : P + 1], "k_cache": k_cache, "v_cache": v_cache, "cos": cos, "sin": sin}
        (y,) = execute(graph, given, bind={"P": P})
        assert np.max(np.abs(y - expected(x[P : P + 1], P, cache))) < 1e-10
        cache.length += 1
        for whole, kept in zip((whole_k, whole_v), cache.read(0, P + 1), strict=True):
            assert np.max(np.abs(whole[:, : P + 1] - kept[0].transpose(1, 0, 2))) < 1e-12


def test_sizes_of_llama_8b() -> None:
    shapes = LLAMA8B.shapes()
    graph = trace(prefill_layer(LLAMA8B, 8), {"x": (8, LLAMA8B.d)}, shapes)
    weights = [node for node in graph if node.op == "constant" and node.attrs["name"] in shapes]
    assert len(weights) == 9
    assert sum(graph.nbytes(node.id) for node in weights) / 1e6 == pytest.approx(436.2, abs=0.05)
    assert {name: array.shape for name, array in layer_params(CFG).items()} == CFG.shapes()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((24, 6, 4, 8, 40), "6 query heads cannot share 4 KV heads"),
        ((24, 6, 2, 7, 40), "dh is 7"),
        ((24, 6, 2, 8, 0), "f is 0"),
    ],
)
def test_layers_that_do_not_exist_are_refused(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LayerCfg(*sizes)
