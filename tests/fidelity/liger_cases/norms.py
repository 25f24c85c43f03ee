"""Normalizations."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional

from tests.fidelity.liger_cases.case import BOUNDS, Case, Draw, Inputs, Tensor, ops

EPS = 1e-6
SHAPES = ((4, 128), (3, 5, 100), (9, 341), (2, 1023), (1, 2048))


def unit_rms(x: Tensor) -> Tensor:
    """x / rms(x) over the last axis (Zhang and Sennrich 2019, eq. 4)."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)


def _rms_cases() -> Iterator[Case]:
    def make(
        shape: tuple[int, ...], mode: str, offset: float, affine: bool, **more: object
    ) -> Case:
        def inputs(draw: Draw) -> Inputs:
            found = {"x": draw.normal(*shape)}
            return found | ({"w": draw.normal(shape[-1])} if affine else {})

        def liger(x: Tensor, w: Tensor | None = None) -> Tensor:
            function = ops("rms_norm").LigerRMSNormFunction
            return function.apply(x, w, EPS, offset, mode, *more.values())

        def reference(x: Tensor, w: Tensor | None = None) -> Tensor:
            return unit_rms(x) if w is None else unit_rms(x) * (offset + w)

        words = [mode, *([] if affine else ["no weight"]), *(k for k, v in more.items() if v)]
        return Case("rms_norm", f"{shape} {', '.join(words)}", inputs, liger, reference)

    for shape in SHAPES:
        yield make(shape, "llama", 0.0, True)
        yield make(shape, "gemma", 1.0, True, in_place=False)
    yield make((5, 96), "none", 0.0, True)
    yield make((5, 96), "llama", 0.0, False)
    yield make((300, 96), "llama", 0.0, True, in_place=True, row_mode=False)
    yield make((7, 1500), "llama", 0.0, True, in_place=True, row_mode=True)


def _fused_add(shape: tuple[int, ...], mode: str, offset: float) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {"x": draw.normal(*shape), "r": draw.normal(*shape), "w": draw.normal(shape[-1])}

    def liger(x: Tensor, r: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        function = ops("fused_add_rms_norm").LigerFusedAddRMSNormFunction
        return function.apply(x, r, w, EPS, offset, mode, False)

    def reference(x: Tensor, r: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return unit_rms(x + r) * (offset + w), x + r

    return Case("fused_add_rms_norm", f"{shape} {mode}", inputs, liger, reference)


def _modulated(shape: tuple[int, int, int], mode: str, weight: bool, shift: bool) -> Case:
    batch, _, size = shape

    def inputs(draw: Draw) -> Inputs:
        found = {"x": draw.normal(*shape), "scale": draw.normal(batch, size)}
        if weight:
            found["w"] = draw.normal(size)
        if shift:
            found["shift"] = draw.normal(batch, size)
        return found

    def liger(x: Tensor, scale: Tensor, w: Tensor | None = None, shift: Tensor | None = None):
        function = ops("modulated_rms_norm").LigerModulatedRMSNormFunction
        return function.apply(x, w, scale, shift, EPS, 0.0, mode, False)

    def reference(x: Tensor, scale: Tensor, w: Tensor | None = None, shift: Tensor | None = None):
        y = unit_rms(x) * (1 if w is None else w) * (1 + scale[:, None])
        return y if shift is None else y + shift[:, None]

    words = ", ".join([mode, *(["weight"] * weight), *(["shift"] * shift)])
    return Case("modulated_rms_norm", f"{shape} {words}", inputs, liger, reference)


def _layer_norm(shape: tuple[int, ...]) -> Case:
    def inputs(draw: Draw) -> Inputs:
        size = shape[-1]
        return {"x": draw.normal(*shape), "w": draw.normal(size), "b": draw.normal(size)}

    def liger(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops("layer_norm").LigerLayerNormFunction.apply(x, w, b, EPS)

    def reference(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], w, b, EPS)

    return Case("layer_norm", f"{shape}", inputs, liger, reference)


def _group_norm(batch: int, channels: int, groups: int, size: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        x = draw.normal(batch, channels, size)
        return {"x": x, "w": draw.normal(channels), "b": draw.normal(channels)}

    def liger(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        function = ops("group_norm").LigerGroupNormFunction
        return function.apply(x, w, b, channels, groups, EPS)

    def reference(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return functional.group_norm(x, groups, w, b, EPS)

    variant = f"({batch}, {channels}, {size}), {groups} groups"
    return Case("group_norm", variant, inputs, liger, reference)


def _poly_norm(shape: tuple[int, ...]) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {"x": draw.normal(*shape), "w": draw.normal(3), "b": draw.normal()}

    def liger(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops("poly_norm").LigerPolyNormFunction.apply(x, w, b, EPS, False)

    def reference(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return w[0] * unit_rms(x**3) + w[1] * unit_rms(x**2) + w[2] * unit_rms(x) + b

    return Case("poly_norm", f"{shape}", inputs, liger, reference)


def _dyt(shape: tuple[int, ...], shift: bool) -> Case:
    def inputs(draw: Draw) -> Inputs:
        found = {"x": draw.normal(*shape), "alpha": draw.normal(1), "w": draw.normal(shape[-1])}
        return found | ({"b": draw.normal(shape[-1])} if shift else {})

    def liger(x: Tensor, alpha: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        return ops("dyt").LigerDyTFunction.apply(x, alpha, w, b)

    def reference(x: Tensor, alpha: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        y = torch.tanh(alpha * x) * w
        return y if b is None else y + b

    # The gradient of α is a sum of many terms that nearly cancel.
    bounds = BOUNDS | {torch.float32: 1e-4}
    return Case("dyt", f"{shape}{' shift' * shift}", inputs, liger, reference, bounds=bounds)


def _attn_res(blocks: int, tokens: tuple[int, ...], size: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        v = draw.normal(blocks, *tokens, size)
        return {"v": v, "query": draw.normal(size, scale=size**-0.5), "w": draw.normal(size)}

    def liger(v: Tensor, query: Tensor, w: Tensor) -> Tensor:
        return ops("attn_res").LigerAttnResFunction.apply(v, query, w, EPS)

    def reference(v: Tensor, query: Tensor, w: Tensor) -> Tensor:
        weights = torch.softmax((unit_rms(v) * w) @ query, dim=0)
        return (weights[..., None] * v).sum(0)

    return Case("attn_res", f"{blocks} × {tokens} × {size}", inputs, liger, reference)


def cases() -> Iterator[Case]:
    """All of this file."""
    yield from _rms_cases()
    for shape in SHAPES[:3]:
        yield _fused_add(shape, "llama", 0.0)
        yield _fused_add(shape, "gemma", 1.0)
    yield _modulated((2, 3, 100), "llama", True, True)
    yield _modulated((3, 4, 64), "gemma", True, False)
    yield _modulated((1, 5, 33), "llama", False, True)
    yield from map(_layer_norm, SHAPES)
    yield _group_norm(2, 6, 3, 50)
    yield _group_norm(3, 4, 1, 128)
    yield _group_norm(1, 8, 8, 33)
    yield from map(_poly_norm, SHAPES[:4])
    yield _dyt((3, 100), True)
    yield _dyt((2, 5, 1030), False)
    yield _attn_res(4, (2, 3), 64)
    yield _attn_res(5, (7,), 100)
