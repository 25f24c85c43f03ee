"""Tracing and executing: operators, constants, dtypes, draws, memory that is written in place."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graph_ir import GraphError, Tensor, execute, trace
from graph_ir.dtypes import promote, rounded
from graph_ir.trace import (
    bernoulli,
    cast,
    exp,
    flash_attention,
    kv_write,
    minimum,
    rms_norm,
    rot_pairs,
    rsqrt,
    silu,
    softmax,
    where,
)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 2, shape)


def test_operators_against_numpy() -> None:
    w = numbers(3)

    def program(p: dict[str, Tensor], x: Tensor) -> tuple[Tensor, ...]:
        return (
            (1 - x) / (2 + x) * 3 - w * x,
            2 / x @ p["m"],
            where(x < 1.0, -x, rsqrt(x)),
            minimum(exp(x), 2.0),
            x.max() - x.sum(),
            rot_pairs(x.permute(1, 0)),
            (x.reshape(2, 1, 3).expand(2, 4, 3) + 0).reshape(8, 3),
        )

    x, m = numbers(2, 3), numbers(3, 5)
    results = execute(trace(program, {"x": (2, 3)}, {"m": m}).check(), {"x": x})
    expected = [
        (1 - x) / (2 + x) * 3 - w * x,
        2 / x @ m,
        np.where(x < 1, -x, 1 / np.sqrt(x)),
        np.minimum(np.exp(x), 2),
        x.max(-1, keepdims=True) - x.sum(-1, keepdims=True),
        np.stack([-x[1], x[0]], axis=-1),
        np.repeat(x, 4, axis=0),
    ]
    for result, right in zip(results, expected, strict=True):
        assert result.shape == right.shape
        assert np.max(np.abs(result - right)) < 1e-14


def test_composites_against_torch() -> None:
    q, k, v = (torch.tensor(numbers(2, 5, 4)) for _ in range(3))
    w = torch.tensor(numbers(4))

    def program(p: dict[str, Tensor], q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return (
            rms_norm(q, p["w"], 1e-3),
            softmax(q),
            silu(-q),
            flash_attention(q, k, v, 0.3, causal=True),
            flash_attention(q, k, v, 0.5),
        )

    given = {"q": q.numpy(), "k": k.numpy(), "v": v.numpy()}
    graph = trace(program, dict.fromkeys(given, (2, 5, 4)), {"w": w.numpy()})
    attention = torch.nn.functional.scaled_dot_product_attention
    expected = [
        torch.nn.functional.rms_norm(q, (4,), w, 1e-3),
        torch.softmax(q, -1),
        torch.nn.functional.silu(-q),
        attention(q, k, v, is_causal=True, scale=0.3),
        attention(q, k, v, scale=0.5),
    ]
    for result, right in zip(execute(graph, given), expected, strict=True):
        assert np.max(np.abs(result - right.numpy())) < 1e-14


def test_large_numbers() -> None:
    graph = trace(lambda p, x: (softmax(x), silu(x)), {"x": (2, 2)})
    weights, gated = execute(graph, {"x": np.array([[5e3, 5e3], [-5e3, 5e3]])})
    assert weights.tolist() == [[0.5, 0.5], [0, 1]]
    assert gated.tolist() == [[5e3, 5e3], [0, 5e3]]


def test_what_is_no_program_is_refused() -> None:
    def branches(p: dict[str, Tensor], x: Tensor) -> Tensor:
        return x if x < 0.0 else -x

    with pytest.raises(TypeError, match="cannot branch on it"):
        trace(branches, {"x": (2,)})
    with pytest.raises(GraphError, match="returns 3, which is no tensor of it"):
        trace(lambda p, x: (x, 3), {"x": (2,)})
    with pytest.raises(GraphError, match=r"add: shapes \(2,\), \(3,\) do not fit together"):
        trace(lambda p, x, y: x + y, {"x": (2,), "y": (3,)})
    with pytest.raises(GraphError, match="arithmetic on bool"):
        trace(lambda p, x: (x < 0.0) * 2, {"x": (2,)})
    for composite in (softmax, silu):
        with pytest.raises(GraphError, match="arithmetic on bool"):
            trace(lambda p, x, of=composite: of(x < 0.0), {"x": (2,)})
    with pytest.raises(GraphError, match="exp: no operand is a tensor"):
        exp(2.0)  # type: ignore[arg-type]
    other: list[Tensor] = []
    trace(lambda p, x: other.append(x) or x, {"x": (2,)})
    with pytest.raises(GraphError, match="belongs to another program"):
        trace(lambda p, x: x + other[0], {"x": (2,)})


def test_dtypes_are_those_of_torch() -> None:
    names = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    names["f64"] = torch.float64
    for a in names:
        assert promote((a, "weak")) == a
        for b in names:
            assert names[promote((a, b))] == torch.promote_types(names[a], names[b])
    values = np.concatenate([np.random.default_rng(1).standard_normal(1000) * 1e3, [1e39, -1e-42]])
    values = np.append(values, [np.nan, np.inf, 65520.0, 3.3961775e38, 1.00390625, 1.01171875])
    for name, dtype in names.items():
        right = torch.tensor(values).float().to(dtype).double().numpy()
        if name == "f64":
            right = values
        if name == "f16":
            right = torch.tensor(values).to(dtype).double().numpy()
        assert np.array_equal(rounded(values, name), right, equal_nan=True), name


def test_rounding_happens_at_each_node() -> None:
    graph = trace(lambda p, x: (x + 1e-3, cast(x, "f32") + 1e-3), {"x": (1,)})
    low, high = execute(graph, {"x": np.ones(1)}, rounding=True)
    assert (low[0], high[0]) == (1.0, float(np.float32(1.001)))
    assert execute(graph, {"x": np.ones(1)})[0][0] == 1.001


def test_draws_are_new_at_each_call_and_the_same_for_a_seed() -> None:
    graph = trace(lambda p, x: (bernoulli(x, 0.5), bernoulli(x, 0.5)), {"x": (8, 8)})
    x = np.zeros((8, 8))
    first, second = execute(graph, {"x": x}, seed=1)
    assert set(np.unique(first)) == {0, 1}
    assert not np.array_equal(first, second)
    assert np.array_equal(first, execute(graph, {"x": x}, seed=1)[0])
    assert not np.array_equal(first, execute(graph, {"x": x}, seed=2)[0])


def test_a_view_shows_what_is_in_memory_when_it_is_used() -> None:
    def program(p: dict[str, Tensor], cache: Tensor, new: Tensor) -> tuple[Tensor, ...]:
        turned = cache.permute(1, 0).reshape(8)  # numpy would copy
        before = turned + 0
        kv_write(cache, new, "P")
        return before, turned + 0, turned

    graph = trace(program, {"cache": (4, 2), "new": (1, 2)})
    cache = np.arange(8.0).reshape(4, 2)
    was, new = cache.copy(), np.array([[-1.0, -2.0]])
    before, after, shown = execute(graph, {"cache": cache, "new": new}, bind={"P": 2})
    assert cache[2].tolist() == [-1, -2]
    assert np.array_equal(before, was.T.ravel())
    assert np.array_equal(after, cache.T.ravel())
    assert np.array_equal(shown, after)


def test_inputs_that_do_not_fit_are_refused() -> None:
    graph = trace(lambda p, x, y: x @ y @ p["w"], {"x": (2, "S"), "y": ("S", 3)}, {"w": (3, 3)})
    x, y = numbers(2, 4), numbers(4, 3)
    with pytest.raises(ValueError, match="constant 'w' has a shape but no values"):
        execute(graph, {"x": x, "y": y})
    graph = trace(lambda p, x, y: x @ y, {"x": (2, "S"), "y": ("S", 3)})
    assert execute(graph, {"x": x, "y": y})[0].shape == (2, 3)
    for given, message in [
        ({"x": x}, r"input 'y' of shape \('S', 3\) is missing"),
        ({"x": x, "y": y, "z": y}, "the program has no input 'z'; it has x, y"),
        ({"x": x, "y": y[:3]}, r"'y' has shape \(3, 3\); .* with S = 4"),
        ({"x": x[0], "y": y}, r"'x' has shape \(4,\); the program takes \(2, 'S'\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            execute(graph, given)
    write = trace(lambda p, c, n: kv_write(c, n, "P"), {"c": (4, 2), "n": (1, 2)})
    c, n = numbers(4, 2), numbers(1, 2)
    with pytest.raises(ValueError, match="position 'P' has no value"):
        execute(write, {"c": c, "n": n})
    with pytest.raises(ValueError, match="positions 4 to 4 do not lie in a cache of 4"):
        execute(write, {"c": c, "n": n}, bind={"P": 4})
    with pytest.raises(ValueError, match="input 'c' is written in place; give a float64 array"):
        execute(write, {"c": c.astype(np.float32), "n": n}, bind={"P": 0})
