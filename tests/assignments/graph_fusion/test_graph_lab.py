"""The passes on programs written by hand: what each must do, and each trap that it must not fall
into."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_ir import (
    LLAMA8B,
    Graph,
    Kernel,
    LayerCfg,
    Tensor,
    decode_layer,
    execute,
    graph_cost,
    layer_params,
    prefill_layer,
    trace,
)
from graph_ir.layers import rope_tables
from graph_ir.memory import check_kernels, run
from graph_ir.ops import causal_mask
from graph_ir.trace import (
    apply,
    bernoulli,
    cast,
    exp,
    kv_write,
    maximum,
    rms_norm,
    rot_pairs,
    softmax,
)

from tests.graph_ir.programs import same
from tests.graph_ir.solution import lab

T, S = 2048, 4096
P = dict[str, Tensor]


def prefill(cfg: LayerCfg, tokens: int, arrays: bool) -> Graph:
    params = layer_params(cfg) if arrays else cfg.shapes()
    return trace(prefill_layer(cfg, tokens), {"x": (tokens, cfg.d)}, params)


def decode(cfg: LayerCfg, arrays: bool) -> Graph:
    params = layer_params(cfg) if arrays else cfg.shapes()
    cache = (cfg.G, "S", cfg.dh)
    table = (1, 1, cfg.dh)
    shapes = {"x": (1, cfg.d), "k_cache": cache, "v_cache": cache, "cos": table, "sin": table}
    return trace(decode_layer(cfg, "P"), shapes, params)


def optimized(g: Graph, attention: bool) -> Graph:
    if attention:
        g, found = lab.match_attention(g)
        assert found == 1
    g = lab.cse(lab.decompose(g))
    for name in ("constant_fold", "simplify", "fold_norm_weight"):
        g, count = getattr(lab, name)(g)
    assert count == 2
    return g.check()


def partitions(g: Graph, bind: dict[str, int] | None = None) -> list[list[Kernel]]:
    """Eager; decomposed, unfused; fused; fused with FlashAttention."""
    return [
        lab.fuse(g, enable=False, bind=bind),
        lab.fuse(lab.decompose(g), enable=False, bind=bind),
        lab.fuse(optimized(g, attention=False), bind=bind),
        lab.fuse(optimized(g, attention=True), bind=bind),
    ]


def printed(kernels: list[Kernel], digits: int) -> list[object]:
    cost = graph_cost(kernels)
    times = [round(cost[name] * 1e6, digits) for name in ("t", "t_total")]
    return [cost["kernels"], float(f"{cost['bytes'] / 1e9:.{3 + digits}g}"), *times]


@pytest.fixture(scope="module")
def prefilled() -> list[list[Kernel]]:
    return partitions(prefill(LLAMA8B, T, arrays=False))


@pytest.fixture(scope="module")
def decoded() -> list[list[Kernel]]:
    return partitions(decode(LLAMA8B, arrays=False), {"S": S})


class TestLlama8B:
    """The figures of one layer in bf16 on an H100, all found by arithmetic."""

    def test_prefill(self, prefilled: list[list[Kernel]]) -> None:
        assert [printed(kernels, 0) for kernels in prefilled] == [
            [26, 3.62, 1754, 1858],
            [45, 5.81, 2408, 2588],
            [12, 2.06, 1262, 1310],
            [10, 0.975, 996, 1036],
        ]

    def test_decode(self, decoded: list[list[Kernel]]) -> None:
        assert [printed(kernels, 1) for kernels in decoded] == [
            [27, 0.4551, 135.8, 243.8],
            [46, 0.4569, 136.4, 320.4],
            [14, 0.4543, 135.6, 191.6],
            [12, 0.4533, 135.3, 183.3],
        ]

    def test_bytes_from_the_sizes(self, prefilled: list[list[Kernel]]) -> None:
        d, H, G, dh, f = 4096, 32, 8, 128, 14336
        stream, weights = 2 * T * d, 2 * (2 * d * H * dh + 2 * d * G * dh + 3 * d * f)
        scores, kv, hidden = 2 * H * T * T, 2 * 2 * T * G * dh, 2 * T * f
        tables, mask = 2 * 2 * T * dh, 2 * T * T
        assert scores == 268_435_456
        flash = (
            2 * (2 * stream)  # two norms, their weights folded
            + weights
            + 3 * stream + 2 * tables + stream + kv  # q, k, v from one input each, rotated
            + 2 * stream + kv  # attention: q, k, v in, heads out
            + 3 * stream  # the output's projection, added to x
            + 2 * stream + 3 * hidden  # gate stored; up, times gate
            + hidden + 2 * stream  # down, added to x
        )  # fmt: skip
        assert graph_cost(prefilled[3])["bytes"] == flash
        apart = 4 * scores + mask + 2 * stream + kv  # in place of 2 · stream + kv
        assert graph_cost(prefilled[2])["bytes"] == flash + apart - 2 * stream - kv

    def test_operations(self, prefilled: list[list[Kernel]]) -> None:
        products = {sum(k.flops[0] for k in kernels) for kernels in prefilled}
        assert products == {2 * T * 218_103_808 + 4 * T * T * 4096}
        assert products.pop() / 1e9 == pytest.approx(962.07, abs=0.005)
        assert [round(graph_cost(k)["flops"] / 1e9, 1) for k in prefilled[:2]] == [963.3, 963.3]

    def test_a_decode_step_reads_weights_and_cache(self, decoded: list[list[Kernel]]) -> None:
        assert pytest.approx(436.2, abs=0.05) == 2 * (218_103_808 + 2 * 4096) / 1e6
        attention = decoded[3][6]
        assert attention.label == "flash_attention"
        # K and V of 8 heads, however many query heads share them; q of 32 heads.
        assert attention.reads == 16_777_216 + 32 * 128 * 2
        writes = [kernel for kernel in decoded[3] if kernel.label == "kv_write"]
        assert [(k.kind, k.reads, k.writes) for k in writes] == [("opaque", 2048, 2048)] * 2

    def test_kernels(self, prefilled: list[list[Kernel]]) -> None:
        norm = "mul + sum + div + add + rsqrt + mul"
        assert [(k.kind, k.label) for k in prefilled[2]] == [
            ("rowwise", norm),
            ("matmul", "matmul attn_norm·wq + mul + rot_pairs + mul + add"),
            ("matmul", "matmul attn_norm·wk + mul + rot_pairs + mul + add"),
            ("matmul", "matmul attn_norm·wv"),
            ("matmul", "matmul + mul + add"),
            ("rowwise", "max + sub + exp + sum + div"),
            ("matmul", "matmul"),
            ("matmul", "matmul wo + add"),
            ("rowwise", norm),
            ("matmul", "matmul mlp_norm·w_gate + neg + exp + add + div"),
            ("matmul", "matmul mlp_norm·w_up + mul"),
            ("matmul", "matmul w_down + add"),
        ]


class TestLayers:
    """All passes on whole layers with numbers."""

    CFG = LayerCfg(24, 6, 2, 8, 40)

    @pytest.mark.parametrize("tokens", [1, 7])
    def test_prefill(self, tokens: int) -> None:
        g = prefill(self.CFG, tokens, arrays=True)
        x = np.random.default_rng(1).standard_normal((tokens, self.CFG.d))
        (expected,) = execute(g, {"x": x})
        for kernels in partitions(g):
            check_kernels(kernels[0].graph, kernels)
            measured = run(kernels[0].graph, kernels, {"x": x})
            assert np.max(np.abs(measured.outputs[0] - expected)) < 1e-12
            assert measured.reads == [kernel.reads for kernel in kernels]
            assert measured.writes == [kernel.writes for kernel in kernels]

    def test_decode(self) -> None:
        g, bind = decode(self.CFG, arrays=True), {"S": 6, "P": 5}
        rng = np.random.default_rng(2)
        cos, sin = rope_tables(self.CFG, 1, 5)
        x = rng.standard_normal((1, self.CFG.d))
        k, v = rng.standard_normal((2, self.CFG.G, 6, self.CFG.dh))

        def given() -> dict[str, np.ndarray]:
            return {"x": x, "k_cache": k.copy(), "v_cache": v.copy(), "cos": cos, "sin": sin}

        inputs = given()
        (expected,) = execute(g, inputs, bind)
        for kernels in partitions(g, bind):
            check_kernels(kernels[0].graph, kernels)
            again = given()
            measured = run(kernels[0].graph, kernels, again, bind)
            assert np.max(np.abs(measured.outputs[0] - expected)) < 1e-12
            for name in ("k_cache", "v_cache"):
                assert np.max(np.abs(again[name] - inputs[name])) < 1e-12
                assert not np.array_equal(again[name], k if name == "k_cache" else v)
            assert measured.reads == [kernel.reads for kernel in kernels]
            assert measured.writes == [kernel.writes for kernel in kernels]


def traced(fn: Callable[..., object], params: object = None, dtype: str = "f64") -> Graph:
    """With inputs x (4, 6), b (6,), s (4, 1), cache (4, 6), as far as `fn` asks for them."""
    shapes = {"x": (4, 6), "b": (6,), "s": (4, 1), "cache": (4, 6)}
    names = fn.__code__.co_varnames[1 : fn.__code__.co_argcount]
    return trace(fn, {name: shapes[name] for name in names}, params, dtype)  # type: ignore[arg-type]


def ops(g: Graph) -> list[str]:
    return [node.op for node in g if node.computes]


def holds(g: Graph, after: Graph) -> bool:
    """Whether both do the same to the same numbers."""
    rng = np.random.default_rng(3)
    given = [
        {name: rng.standard_normal([int(s) for s in node.shape]) for name, node in g.inputs.items()}
    ]
    given.append({name: array.copy() for name, array in given[0].items()})
    before, later = execute(g, given[0], seed=9), execute(after.check(), given[1], seed=9)
    return same([*later, *given[1].values()], [*before, *given[0].values()])


class TestDecompose:
    def test_seven_five_four(self) -> None:
        g = traced(lambda p, x, b: (rms_norm(x, b, 1e-5), softmax(x)))
        assert ops(lab.decompose(g)) == [
            *("mul", "sum", "div", "add", "rsqrt", "mul", "mul"),
            *("max", "sub", "exp", "sum", "div"),
        ]
        assert holds(g, lab.decompose(g))

    def test_a_softmax_of_large_numbers_does_not_overflow(self) -> None:
        g = lab.decompose(traced(lambda p, x: softmax(x)))
        (y,) = execute(g, {"x": np.full((4, 6), 5000.0)})
        assert y == pytest.approx(np.full((4, 6), 1 / 6))


class TestCse:
    def test_equal_nodes_are_one_whatever_their_order(self) -> None:
        g = traced(lambda p, x, b: exp(x + b) * exp(b + x) + (x * b) / (b * x))
        assert ops(lab.cse(g)) == ["add", "exp", "mul", "mul", "div", "add"]
        assert holds(g, lab.cse(g))

    @pytest.mark.parametrize(
        ("fn", "count"),
        [
            (lambda p, x, b: (x - b) + (b - x), 3),
            (lambda p, x: maximum(x, 0.0) + maximum(0.0, x), 3),
            (lambda p, x: (x * 0.0) / (x * -0.0), 3),
            (lambda p, x, b: rms_norm(x, b, 1e-5) + rms_norm(x, b, 1e-6), 3),
            (lambda p, x: cast(x, "f32") + cast(x, "bf16"), 3),
            (lambda p, x: bernoulli(x, 0.5) + bernoulli(x, 0.5), 3),
        ],
    )
    def test_what_only_looks_equal(self, fn: Callable[..., Tensor], count: int) -> None:
        g = traced(fn)
        assert len(ops(lab.cse(g))) == count
        assert holds(g, lab.cse(g))

    def test_views_differ_in_their_attributes(self) -> None:
        g = traced(lambda p, x: x.reshape(6, 4) + x.permute(1, 0) + x.reshape(6, 4))
        after = lab.cse(g)
        assert sum(node.kind == "view" for node in after) == 2
        assert holds(g, after)

    def test_memory_between_two_reads_may_change(self) -> None:
        def program(p: P, cache: Tensor, b: Tensor) -> Tensor:
            before = exp(cache)
            kv_write(cache, b.reshape(1, 6), 2)
            return before / exp(cache)

        g = traced(program)
        assert ops(lab.cse(g)) == ["exp", "kv_write", "exp", "div"]
        assert holds(g, lab.cse(g))

    def test_of_two_equal_values_one_is_written_to(self) -> None:
        def program(p: P, x: Tensor, b: Tensor) -> Tensor:
            first, second = x + 1, x + 1
            kv_write(first, b.reshape(1, 6), 0)
            return first - second

        g = traced(program)
        assert len(ops(lab.cse(g))) == 4
        assert holds(g, lab.cse(g))


class TestConstantFold:
    W = np.array([1.0, -2.0, 0.0, np.nan, np.inf, 0.5])

    def test_a_chain_becomes_a_constant_with_or_without_numbers(self) -> None:
        def program(p: P, x: Tensor) -> Tensor:
            return x * exp(1 + p["w"]).reshape(1, 6)

        for params in ({"w": self.W}, {"w": (6,)}):
            g = traced(program, params)
            after, count = lab.constant_fold(g)
            assert (count, ops(after)) == (2, ["mul"])
            assert len(after.constants) == 1
        g = traced(program, {"w": self.W})
        assert holds(g, lab.constant_fold(g)[0])

    def test_nan_and_infinity_are_values(self) -> None:
        g = traced(lambda p, x: x + (p["w"] - p["w"]) * 0.0, {"w": self.W})
        after, count = lab.constant_fold(g)
        assert count == 2
        assert holds(g, after)

    def test_what_would_be_larger_is_left(self) -> None:
        g = traced(
            lambda p, x: x + p["w"].reshape(1, 6) * p["k"], {"w": self.W, "k": np.ones((4, 1))}
        )
        assert lab.constant_fold(g)[1] == 0

    def test_draws_and_memory_are_left(self) -> None:
        def program(p: P, b: Tensor) -> Tensor:
            kv_write(p["k"], b.reshape(1, 6), 1)
            return p["k"] * 2 + bernoulli(p["k"], 0.5)

        g = traced(program, {"k": np.ones((4, 6))})
        after, count = lab.constant_fold(g)
        assert count == 0
        assert holds(g, after)


def negated(x: Tensor) -> Tensor:
    return apply("neg", apply("neg", x))


class TestSimplify:
    @pytest.mark.parametrize(
        ("fn", "left"),
        [
            (lambda p, x: x * 1, []),
            (lambda p, x: 1 * x, []),
            (lambda p, x: x / 1, []),
            (lambda p, x: x - 0.0, []),
            (lambda p, x: x + -0.0, []),
            (lambda p, x: -0.0 + x, []),
            (lambda p, x: negated(negated(x)), []),
            (lambda p, x: maximum(x, x), []),
            (lambda p, x, b: x + (-b), ["sub"]),
            (lambda p, x, b: -b + x, ["sub"]),
            (lambda p, x, b: x - (-b), ["add"]),
            (lambda p, x: cast(x, "f64"), []),
            # and what stays
            (lambda p, x: x + 0.0, ["add"]),
            (lambda p, x: x - -0.0, ["sub"]),
            (lambda p, x: x * 0.0, ["mul"]),
            (lambda p, x: 1 / x, ["div"]),
            (lambda p, x: 0.0 - x, ["sub"]),
            (lambda p, x: x - x, ["sub"]),
            (lambda p, x: x / x, ["div"]),
            (lambda p, x: cast(cast(x, "f32"), "f64"), ["cast", "cast"]),
        ],
    )
    def test_rules(self, fn: Callable[..., Tensor], left: list[str]) -> None:
        g = traced(fn)
        after, count = lab.simplify(g)
        assert ops(after) == left
        assert bool(count) == (left in ([], ["add"], ["sub"]) and ops(g) != left)
        special = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]] * 4)
        given = {"x": special, "b": special[0, ::-1].copy()}
        given = {name: given[name] for name in g.inputs}
        assert same(execute(after, given), execute(g, given))

    def test_a_dtype_is_a_difference(self) -> None:
        g = trace(
            lambda p, x: (maximum(x, x) + cast(x, "f32"), cast(cast(x, "f32"), "bf16")),
            {"x": (4, 6)},
        )
        after, count = lab.simplify(g)
        assert [after[i].dtype for i in after.outputs] == ["f32", "bf16"]
        assert ops(after) == ["cast", "add"]
        assert count == 2

    def test_views_of_views(self) -> None:
        g = traced(lambda p, x: x.reshape(3, 8).reshape(4, 6).permute(1, 0).permute(1, 0))
        after, count = lab.simplify(g)
        assert len(after) == 1
        assert count == 2

    def test_a_copy_of_memory_that_changes_is_needed(self) -> None:
        def program(p: P, cache: Tensor, b: Tensor) -> tuple[Tensor, ...]:
            copy = cache * 1
            negative = -cache
            kv_write(cache, b.reshape(1, 6), 0)
            return copy, b - negative

        g = traced(program)
        assert holds(g, lab.simplify(g)[0])

    def test_a_copy_that_changes_is_needed(self) -> None:
        def program(p: P, x: Tensor, b: Tensor) -> tuple[Tensor, ...]:
            copy = x * 1
            kv_write(copy, b.reshape(1, 6), 0)
            return copy, x + 1

        g = traced(program)
        assert ops(lab.simplify(g)[0])[0] == "mul"
        assert holds(g, lab.simplify(g)[0])

    def test_a_negative_that_changes_is_none(self) -> None:
        def program(p: P, x: Tensor, b: Tensor) -> tuple[Tensor, ...]:
            negative = -x
            kv_write(negative, b.reshape(1, 6), 0)
            return b + negative, b - negative, -negative

        g = traced(program)
        assert lab.simplify(g)[1] == 0
        assert holds(g, lab.simplify(g)[0])


class TestFoldNormWeight:
    W, M = np.linspace(0.5, 2, 6), np.random.default_rng(5).standard_normal((6, 3))
    PARAMS = {"w": W, "m": M, "n": M[::-1].copy()}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("fn", "folded"),
        [
            (lambda p, x: (x * p["w"]) @ p["m"], 1),
            (lambda p, x: (p["w"] * x) @ p["m"], 1),
            (lambda p, x: (lambda h: (h @ p["m"], h @ p["n"]))(x * p["w"]), 1),
            # its result is needed as it is
            (lambda p, x: (lambda h: (h @ p["m"], h))(x * p["w"]), 0),
            (lambda p, x: (lambda h: h @ p["m"] + h.sum())(x * p["w"]), 0),
            # no matrix behind it, or not one of its own
            (lambda p, x: x + x * p["w"], 0),
            (lambda p, x: ((x * p["w"]) @ p["m"], x @ p["m"]), 0),
            (lambda p, x: ((x * p["w"]) @ p["m"], p["m"] * 2), 0),
            (lambda p, x: (x * p["w"]) @ (p["m"] * 1.5), 0),
            (lambda p, x, s: (x * s) @ p["m"], 0),
        ],
    )
    def test_where_it_can(self, fn: Callable[..., Tensor], folded: int) -> None:
        g = traced(fn, self.PARAMS)
        after, count = lab.fold_norm_weight(g)
        assert count == folded
        assert ops(after).count("mul") == ops(g).count("mul") - folded
        x, s = np.random.default_rng(6).standard_normal((4, 6)), np.ones((4, 1))
        given = {name: {"x": x, "s": s}[name] for name in g.inputs}
        for a, b in zip(execute(after.check(), given), execute(g, given), strict=True):
            assert np.max(np.abs(a - b)) < 1e-13

    def test_one_plus_the_weight_is_folded_once(self) -> None:
        g = traced(lambda p, x: (x * (1 + p["w"])) @ p["m"], self.PARAMS)
        assert lab.fold_norm_weight(g)[1] == 0
        after, count = lab.fold_norm_weight(lab.constant_fold(g)[0])
        assert (count, ops(after)) == (1, ["matmul"])
        (matrix,) = (array for array in after.constants.values())
        assert np.array_equal(matrix, (1 + self.W)[:, None] * self.M)

    def test_shapes_alone_are_enough(self) -> None:
        g = traced(lambda p, x: (x * p["w"]) @ p["m"], {"w": (6,), "m": (6, 3)})
        after, count = lab.fold_norm_weight(g)
        assert (count, list(after.constants.values())) == (1, [None])

    def test_a_matrix_does_not_become_wider(self) -> None:
        def program(p: P, x: Tensor) -> Tensor:
            return (x * x.constant(self.W, "w", "f32")) @ p["m"]

        g = traced(program, {"m": self.M}, dtype="bf16")
        assert lab.fold_norm_weight(g)[1] == 0

    def test_memory_that_changes_stays(self) -> None:
        def program(p: P, cache: Tensor, b: Tensor) -> Tensor:
            h = cache * p["w"]
            kv_write(cache, b.reshape(1, 6), 0)
            return h @ p["m"]

        assert lab.fold_norm_weight(traced(program, self.PARAMS))[1] == 0


def attention(
    p: P, x: Tensor, scale: float | None, mask: np.ndarray | None, **how: object
) -> object:
    """Two heads of 3 from x (4, 6)."""
    heads = x.reshape(4, 2, 3).permute(1, 0, 2)
    q, k, v = heads, exp(heads), heads * 0.5
    scores = q @ k.permute(0, 2, 1)
    if scale is not None:
        scores = scores / scale if how.get("divide") else scores * scale
    if mask is not None:
        scores = scores + x.constant(mask, "mask")
    weights = softmax(scores)
    result = weights @ v
    return (result, weights) if how.get("weights") else result


class TestMatchAttention:
    X = np.random.default_rng(7).standard_normal((4, 6))

    @pytest.mark.parametrize("divide", [False, True])
    @pytest.mark.parametrize("scale", [None, 0.25, 3.0])
    @pytest.mark.parametrize("mask", [None, causal_mask(4, 4), causal_mask(4, 4)[None]])
    def test_found(self, scale: float | None, mask: np.ndarray | None, divide: bool) -> None:
        g = traced(lambda p, x: attention(p, x, scale, mask, divide=divide))
        after, count = lab.match_attention(g)
        assert count == 1
        assert "softmax" not in ops(after)
        (result,), (expected,) = execute(after.check(), {"x": self.X}), execute(g, {"x": self.X})
        assert np.max(np.abs(result - expected)) < 1e-13

    @pytest.mark.parametrize(
        "mask",
        [
            np.zeros((4, 4)),
            np.where(np.tri(4, k=-1) > 0, 0, -np.inf),
            np.where(np.tri(4, k=1) > 0, 0, -np.inf),
            np.where(np.tri(4) > 0, 0, -1e9),
            np.stack([causal_mask(4, 4)] * 2),
            causal_mask(4, 4)[:, :1],
        ],
    )
    def test_another_mask_is_another_kernel(self, mask: np.ndarray) -> None:
        g = traced(lambda p, x: attention(p, x, 0.5, mask))
        assert lab.match_attention(g)[1] == 0

    def test_weights_that_somebody_needs(self) -> None:
        g = traced(lambda p, x: attention(p, x, 0.5, None, weights=True))
        assert lab.match_attention(g)[1] == 0

    def test_a_cache_that_changes_between_the_products(self) -> None:
        def program(p: P, x: Tensor, cache: Tensor) -> Tensor:
            weights = softmax(x @ cache.permute(1, 0) * 0.5)
            return weights @ kv_write(cache, x, 0)

        assert lab.match_attention(traced(program))[1] == 0

    def test_a_scale_of_each_row_is_none(self) -> None:
        g = traced(lambda p, x, s: softmax(x @ x.permute(1, 0) * s) @ x)
        assert lab.match_attention(g)[1] == 0


def labels(g: Graph) -> list[str]:
    kernels = lab.fuse(g)
    check_kernels(g, kernels)
    rng = np.random.default_rng(8)
    given = {n: rng.uniform(0.5, 1.5, [int(s) for s in m.shape]) for n, m in g.inputs.items()}
    other = {name: array.copy() for name, array in given.items()}
    measured = run(g, kernels, given, seed=2)
    assert same(measured.outputs, execute(g, other, seed=2))
    assert measured.reads == [kernel.reads for kernel in kernels]
    return [f"{kernel.kind}: {kernel.label}" for kernel in kernels]


class TestFuse:
    def test_an_epilogue_has_the_same_index_map_not_only_as_many_elements(self) -> None:
        square = {"m": np.random.default_rng(9).standard_normal((6, 4))}
        same_map = traced(lambda p, x: exp((x @ p["m"]).reshape(16)), square)
        assert labels(same_map) == ["matmul: matmul m + exp"]
        turned = traced(lambda p, x: (lambda y: y + y.permute(1, 0))(x @ p["m"]), square)
        assert labels(turned) == ["matmul: matmul m", "pointwise: add"]

    def test_a_result_is_not_broadcast_within_its_kernel(self) -> None:
        g = traced(lambda p, x, b: x + exp(b))
        assert labels(g) == ["pointwise: exp", "pointwise: add"]

    def test_rows_stay_on_the_chip_columns_do_not(self) -> None:
        assert labels(traced(lambda p, x: exp(x - x.max()))) == ["rowwise: max + sub + exp"]

        def program(p: P, x: Tensor) -> Tensor:
            square = x @ x.permute(1, 0)
            return square - square.max().permute(1, 0)

        assert labels(traced(program)) == ["matmul: matmul", "rowwise: max", "pointwise: sub"]

    def test_a_reduction_of_other_rows_is_another_kernel(self) -> None:
        def program(p: P, x: Tensor) -> Tensor:
            y = exp(x)
            return y.sum().reshape(1, 4) + y.reshape(3, 8).sum()

        assert labels(traced(program)) == ["rowwise: exp + sum", "rowwise: sum", "pointwise: add"]

    def test_what_feeds_only_a_reduction_waits_for_it(self) -> None:
        m = {"m": np.ones((6, 6))}
        g = traced(lambda p, x: (lambda h: h / (h * h).sum())(x + x @ p["m"]), m)
        assert labels(g) == ["matmul: matmul m + add", "rowwise: mul + sum + div"]
        assert lab.fuse(g)[1].reads == lab.fuse(g)[0].writes == 4 * 6 * 8

    def test_it_does_not_wait_beyond_a_write_to_what_it_reads(self) -> None:
        def program(p: P, cache: Tensor, b: Tensor) -> Tensor:
            powers = exp(cache)
            kv_write(cache, b.reshape(1, 6), 1)
            return powers.sum() + cache.sum()

        # The sum may join what had to be done before the write, but exp may not join it later.
        assert labels(traced(program)) == [
            *("rowwise: exp + sum", "opaque: kv_write", "rowwise: sum + add"),
        ]

    def test_who_cannot_come_along_takes_its_operands_with_it(self) -> None:
        def program(p: P, x: Tensor) -> Tensor:
            powers = exp(x)
            turned = powers.permute(1, 0) * 2  # waits, but is no element of the sum's rows
            return (powers + turned.permute(1, 0)).sum()

        assert labels(traced(program)) == ["pointwise: exp", "pointwise: mul", "rowwise: add + sum"]

    def test_no_cycle_through_a_node_between(self) -> None:
        # add needs exp and the product; the product needs exp: all three in one kernel would wait
        # for the product, which waits for them.
        def program(p: P, x: Tensor) -> Tensor:
            powers = exp(x)
            return powers + powers @ p["m"]

        g = traced(program, {"m": np.ones((6, 6))})
        assert labels(g) == ["pointwise: exp", "matmul: matmul m + add"]

    def test_outputs_are_stored_whoever_else_uses_them(self) -> None:
        g = traced(lambda p, x: (lambda y: (y, -y))(exp(x)))
        (kernel,) = lab.fuse(g)
        assert len(kernel.outputs) == 2
        assert kernel.writes == 2 * kernel.reads

    def test_a_root_is_loaded_once_at_its_own_size(self) -> None:
        def program(p: P, x: Tensor, s: Tensor) -> Tensor:
            y = x * s.expand(4, 6)
            return y + x.reshape(24).reshape(4, 6) / s * (y + 0.5)

        g = traced(program)
        assert labels(g) == ["pointwise: mul + add", "pointwise: div + mul + add"]
        first, second = lab.fuse(g)
        assert first.reads == (24 + 4) * 8
        assert second.reads == (24 + 24 + 24 + 4) * 8  # y, y + 0.5, x, s

    def test_rotation_needs_whole_rows(self) -> None:
        m = {"m": np.ones((6, 6))}
        heads = traced(lambda p, x: rot_pairs((x @ p["m"]).reshape(4, 3, 2)), m)
        assert labels(heads) == ["matmul: matmul m + rot_pairs"]
        across = traced(lambda p, x: rot_pairs((x @ p["m"]).reshape(3, 8)), m)
        assert labels(across) == ["matmul: matmul m", "pointwise: rot_pairs"]

    def test_draws_are_kernels_of_their_own(self) -> None:
        g = traced(lambda p, x: exp(x) * bernoulli(x, 0.5))
        assert labels(g) == ["pointwise: exp", "opaque: bernoulli", "pointwise: mul"]

    def test_sizes_need_values(self) -> None:
        g = decode(LayerCfg(8, 2, 1, 4, 8), arrays=False)
        with pytest.raises(ValueError, match=r"sizes S have no values yet"):
            lab.fuse(g)
        assert len(lab.fuse(g, bind={"S": 5})) == 15
