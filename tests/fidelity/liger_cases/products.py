"""Kernels around matrix products: attention, experts, hyper-connections, packed integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from tests.fidelity.liger_cases.case import (
    TF32_BOUNDS,
    Case,
    Draw,
    Inputs,
    Tensor,
    constant,
    ops,
)
from tests.fidelity.liger_cases.elementwise import sparsemax


def _multi_token(shape: tuple[int, int, int], kernel: int, sparse: bool) -> Case:
    batch, heads, tokens = shape

    def inputs(draw: Draw) -> Inputs:
        scores = draw.normal(batch, heads, tokens, tokens)
        weight = draw.normal(heads, heads, kernel, kernel, scale=0.3)
        return {"scores": scores, "weight": weight, "b": draw.normal(heads)}

    def liger(scores: Tensor, weight: Tensor, b: Tensor) -> Tensor:
        function = ops("multi_token_attention").LigerMultiTokenAttentionFunction
        return function.apply(scores, weight, b, 1, kernel // 2, 1, 1, sparse)

    def reference(scores: Tensor, weight: Tensor, b: Tensor) -> Tensor:
        future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -1e9)
        shares = sparsemax(scores) if sparse else scores.softmax(-1)
        mixed = functional.conv2d(shares, weight, b, padding=kernel // 2)
        return mixed.masked_fill(future, 0)

    variant = f"{shape}, kernel {kernel}{', sparse' * sparse}"
    dtypes = (torch.float32,) if sparse else (torch.float32, torch.bfloat16)
    return Case("multi_token_attention", variant, inputs, liger, reference, dtypes=dtypes)


def _neighborhood(shape: tuple[int, int, int, int], window: int, dilation: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {name: draw.normal(*shape) for name in ("q", "k", "v")}

    def liger(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        function = ops("fused_neighborhood_attention").LigerFusedNeighborhoodAttentionFunction
        return function.apply(q, k, v, window, dilation, None)

    def reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        position = torch.arange(shape[2])
        apart = position[:, None] - position
        near = (apart.abs() <= window // 2 * dilation) & (apart % dilation == 0)
        scores = q @ k.mT / shape[3] ** 0.5
        return scores.masked_fill(~near, float("-inf")).softmax(-1) @ v

    return Case(
        "fused_neighborhood_attention",
        f"{shape}, window {window}, dilation {dilation}",
        inputs,
        liger,
        reference,
        # Scores and probabilities go through memory in bfloat16.
        bounds=TF32_BOUNDS | {torch.bfloat16: 4e-2},
    )


def _experts(tokens: int, size: int, inner: int, experts: int, chosen: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        scores = draw.normal(tokens, experts, dtype=torch.float32).softmax(-1)
        weight, index = scores.topk(chosen, dim=-1)
        return {
            "x": draw.normal(tokens, size),
            "up": draw.normal(experts, 2 * inner, size, scale=size**-0.5),
            "down": draw.normal(experts, size, inner, scale=inner**-0.5),
            "index": index.to(torch.int32),
            "weight": weight.to(draw.dtype),
        }

    def liger(x: Tensor, up: Tensor, down: Tensor, index: Tensor, weight: Tensor) -> Tensor:
        return ops("fused_moe").LigerFusedMoEFunction.apply(x, up, down, index, weight)

    def reference(x: Tensor, up: Tensor, down: Tensor, index: Tensor, weight: Tensor) -> Tensor:
        gate, value = torch.einsum("th,tkih->tki", x, up[index.long()]).chunk(2, dim=-1)
        each = torch.einsum("tki,tkhi->tkh", functional.silu(gate) * value, down[index.long()])
        return (each * weight[..., None]).sum(1)

    return Case(
        "fused_moe",
        f"{tokens} × {size} → {inner}, {chosen} of {experts}",
        inputs,
        liger,
        reference,
        constant("index"),
        bounds=TF32_BOUNDS,
    )


def _mlp(shape: tuple[int, int, int], inner: int, *multipliers: float) -> Case:
    size = shape[-1]

    def inputs(draw: Draw) -> Inputs:
        return {
            "x": draw.normal(*shape),
            "gate": draw.normal(inner, size, scale=size**-0.5),
            "up": draw.normal(inner, size, scale=size**-0.5),
            "down": draw.normal(size, inner, scale=inner**-0.5),
        }

    def liger(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        return ops("mlp").LigerMLPFunction.apply(x, gate, up, down, *multipliers)

    def reference(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        first, last = multipliers or (1.0, 1.0)
        return functional.silu(x @ gate.T * first) * (x @ up.T) @ down.T * last

    words = f" × {multipliers}" if multipliers else ""
    return Case("mlp", f"{shape} → {inner}{words}", inputs, liger, reference, bounds=TF32_BOUNDS)


def _tiled_mlp(shape: tuple[int, int, int], inner: int, shards: int) -> Case:
    size = shape[-1]

    def inputs(draw: Draw) -> Inputs:
        return {
            "x": draw.normal(*shape),
            "gate": draw.normal(inner, size, scale=size**-0.5),
            "up": draw.normal(inner, size, scale=size**-0.5),
            "down": draw.normal(size, inner, scale=inner**-0.5),
        }

    def liger(x: Tensor, **weights: Tensor) -> Tensor:
        gated = ops("swiglu").LigerSiLUMulFunction

        class Mlp(torch.nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                both = (functional.linear(x, weights[name]) for name in ("gate", "up"))
                return functional.linear(gated.apply(*both), weights["down"])

        apply = ops("tiled_mlp").LigerTiledMLPFunction.apply
        # Only x gets a gradient through it: weights are the module's, which accumulates its own.
        return apply(lambda module, part: module(part), Mlp(), x, shards)

    def reference(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        return functional.silu(x @ gate.T) * (x @ up.T) @ down.T

    others = constant("gate", "up", "down")
    variant = f"{shape} → {inner}, {shards} shards"
    return Case("tiled_mlp", variant, inputs, liger, reference, others)


# ---------------------------------------------------------------------------- hyper-connections
STREAMS, ROUNDS, SINKHORN_EPS, RMS_EPS = 4, 5, 1e-6, 1e-6


def connections(x: Tensor, phi: Tensor, b: Tensor, *alphas: Tensor) -> tuple[Tensor, ...]:
    """H_pre, H_post, H_res of manifold-constrained hyper-connections (eqs. 14 to 19)."""
    flat = x.flatten(-2)
    mix = flat @ phi * torch.rsqrt(flat.square().mean(-1, keepdim=True) + RMS_EPS)
    sizes = [STREAMS, STREAMS, STREAMS**2]
    pre, post, res = (
        part * alpha + bias
        for part, alpha, bias in zip(mix.split(sizes, dim=-1), alphas, b.split(sizes), strict=True)
    )
    matrix = res.unflatten(-1, (STREAMS, STREAMS)).softmax(-1) + SINKHORN_EPS
    matrix = matrix / (matrix.sum(-2, keepdim=True) + SINKHORN_EPS)
    for _ in range(ROUNDS - 1):
        for axis in (-1, -2):
            matrix = matrix / (matrix.sum(axis, keepdim=True) + SINKHORN_EPS)
    return pre.sigmoid(), 2 * post.sigmoid(), matrix


def _connections(tokens: tuple[int, ...], size: int) -> Case:
    outputs = STREAMS**2 + 2 * STREAMS

    def inputs(draw: Draw) -> Inputs:
        found = {
            "x": draw.normal(*tokens, STREAMS, size),
            "phi": draw.normal(STREAMS * size, outputs, scale=(STREAMS * size) ** -0.5),
            "b": draw.normal(outputs, dtype=torch.float32),
        }
        names = ("pre", "post", "res")
        return found | {name: draw.positive(dtype=torch.float32) for name in names}

    def liger(x: Tensor, phi: Tensor, b: Tensor, pre: Tensor, post: Tensor, res: Tensor) -> Any:
        numbers = (True, ROUNDS, RMS_EPS, 0.0, SINKHORN_EPS, 2.0)
        return ops("mhc").LigerMHCCoeffsFunction.apply(x, phi, b, pre, post, res, *numbers)

    def reference(x: Tensor, phi: Tensor, b: Tensor, pre: Tensor, post: Tensor, res: Tensor) -> Any:
        return connections(x, phi, b, pre, post, res)

    variant = f"{tokens}, {STREAMS} × {size}"
    # A gradient of a scalar is a sum of many terms that nearly cancel.
    bounds = TF32_BOUNDS | {torch.float32: 5e-3}
    return Case("mhc_coeffs", variant, inputs, liger, reference, bounds=bounds)


def _before(tokens: tuple[int, ...], size: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        weights = draw.positive(*tokens, STREAMS, dtype=torch.float32)
        return {"x": draw.normal(*tokens, STREAMS, size), "weights": weights}

    def liger(x: Tensor, weights: Tensor) -> Tensor:
        return ops("mhc").LigerMHCPreFunction.apply(x, weights)

    def reference(x: Tensor, weights: Tensor) -> Tensor:
        return (weights[..., None] * x).sum(-2)

    return Case("mhc_pre", f"{tokens}, {STREAMS} × {size}", inputs, liger, reference)


def _after(tokens: tuple[int, ...], size: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {
            "x": draw.normal(*tokens, STREAMS, size),
            "f": draw.normal(*tokens, size),
            "post": draw.positive(*tokens, STREAMS, dtype=torch.float32),
            "res": draw.positive(*tokens, STREAMS, STREAMS, dtype=torch.float32),
        }

    def liger(x: Tensor, f: Tensor, post: Tensor, res: Tensor) -> Tensor:
        return ops("mhc").LigerMHCPostResFunction.apply(x, f, post, res)

    def reference(x: Tensor, f: Tensor, post: Tensor, res: Tensor) -> Tensor:
        return res @ x + post[..., None] * f[..., None, :]

    return Case("mhc_post_res", f"{tokens}, {STREAMS} × {size}", inputs, liger, reference)


def _packed(rows: int, columns: int, inner: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {
            "a": draw.whole(rows, inner, low=-128, high=128).to(torch.int8),
            "b": draw.whole(inner, columns, low=-1, high=2).to(torch.int32),
        }

    def liger(a: Tensor, b: Tensor) -> Tensor:
        module = ops("experimental.mm_int8int2")
        return module.matmul(a, module.pack_weights(b.clone(), 2))

    def reference(a: Tensor, b: Tensor) -> Tensor:
        return (a.long() @ b.long()).to(torch.int32)

    variant = f"{rows} × {inner} · {inner} × {columns}"
    return Case("mm_int8int2", variant, inputs, liger, reference, constant("a", "b"), (torch.int8,))


def cases() -> Iterator[Case]:
    """All of this file."""
    yield _multi_token((2, 4, 32), 3, False)
    yield _multi_token((1, 3, 25), 5, False)
    yield _multi_token((2, 2, 20), 3, True)
    yield _neighborhood((2, 3, 40, 32), 7, 1)
    yield _neighborhood((1, 2, 33, 48), 5, 2)
    yield _experts(17, 64, 32, 4, 2)
    yield _experts(50, 48, 80, 5, 3)
    yield _mlp((1, 32, 64), 128)
    yield _mlp((2, 24, 48), 80, 0.5, 1.5)
    yield _tiled_mlp((2, 24, 32), 64, 3)
    yield _connections((5,), 32)
    yield _connections((2, 3), 50)
    yield _before((2, 5), 64)
    yield _before((7,), 100)
    yield _after((2, 5), 64)
    yield _after((7,), 100)
    yield _packed(20, 48, 512)
