"""Activations, softmaxes, embeddings."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional

from tests.fidelity.liger_cases.case import BOUNDS, Case, Draw, Inputs, Tensor, constant, ops

SHAPES = ((4, 128), (2, 3, 100), (5, 1025))


def _gated(kernel: str, shape: tuple[int, ...], *multipliers: float) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {"a": draw.normal(*shape), "b": draw.normal(*shape)}

    def liger(a: Tensor, b: Tensor) -> Tensor:
        name = "LigerGELUMulFunction" if kernel == "geglu" else "LigerSiLUMulFunction"
        # They write the gradients over a and b, which must not be leaves then.
        return getattr(ops(kernel), name).apply(a.clone(), b.clone(), *multipliers)

    def reference(a: Tensor, b: Tensor) -> Tensor:
        if kernel == "geglu":
            return functional.gelu(a, approximate="tanh") * b
        gate, down = multipliers or (1.0, 1.0)
        return functional.silu(a * gate) * b * down

    words = f" × {multipliers}" if multipliers else ""
    return Case(kernel, f"{shape}{words}", inputs, liger, reference)


def _fused_gate_up(shape: tuple[int, ...]) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {"y": draw.normal(*shape[:-1], 2 * shape[-1])}

    def liger(y: Tensor) -> Tensor:
        # Not in place: it would hand autograd a view of its own input, which torch 2.13 refuses.
        return ops("swiglu").LigerFusedGateUpSiLUMulFunction.apply(y, False)

    def reference(y: Tensor) -> Tensor:
        gate, up = y.chunk(2, dim=-1)
        return functional.silu(gate) * up

    return Case("swiglu_fused_gate_up", f"{shape}", inputs, liger, reference)


def _relu_squared(shape: tuple[int, ...]) -> Case:
    def liger(x: Tensor) -> Tensor:
        return ops("relu_squared").LigerReLUSquaredFunction.apply(x)

    return Case(
        "relu_squared",
        f"{shape}",
        lambda draw: {"x": draw.normal(*shape)},
        liger,
        lambda x: functional.relu(x).square(),
    )


def _softmax(shape: tuple[int, ...]) -> Case:
    def liger(x: Tensor) -> Tensor:
        return ops("softmax").LigerSoftmaxFunction.apply(x)

    return Case(
        "softmax",
        f"{shape}",
        lambda draw: {"x": draw.normal(*shape, scale=3.0)},
        liger,
        lambda x: torch.softmax(x, dim=-1),
    )


def sparsemax(x: Tensor, dim: int = -1) -> Tensor:
    """Projection on the simplex (Martins and Astudillo 2016, algorithm 1)."""
    z = x.movedim(dim, -1)
    ordered = z.sort(dim=-1, descending=True).values
    ranks = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
    inside = 1 + ranks * ordered > ordered.cumsum(-1)
    count = inside.sum(-1, keepdim=True)
    threshold = ((ordered * inside).sum(-1, keepdim=True) - 1) / count
    return (z - threshold).clamp(min=0).movedim(-1, dim)


def _sparsemax(shape: tuple[int, ...], dim: int) -> Case:
    def liger(x: Tensor) -> Tensor:
        return ops("sparsemax").LigerSparsemaxFunction.apply(x, dim)

    return Case(
        "sparsemax",
        f"{shape} axis {dim}",
        lambda draw: {"x": draw.normal(*shape)},
        liger,
        lambda x: sparsemax(x, dim),
    )


def _embedding(count: int, size: int, *shape: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {"table": draw.normal(count, size), "index": draw.whole(*shape, high=count)}

    def liger(table: Tensor, index: Tensor) -> Tensor:
        return ops("experimental.embedding").LigerEmbeddingFunction.apply(table, index)

    def reference(table: Tensor, index: Tensor) -> Tensor:
        return functional.embedding(index, table)

    return Case(
        "embedding",
        f"{count} × {size}, {shape}",
        inputs,
        liger,
        reference,
        constant("index"),
        # Gradients of an index that comes often are added in bfloat16, one after the other.
        bounds=BOUNDS | {torch.bfloat16: 4e-2},
    )


def cases() -> Iterator[Case]:
    """All of this file."""
    for shape in SHAPES:
        yield _gated("geglu", shape)
        yield _gated("swiglu", shape)
        yield _relu_squared(shape)
    yield _gated("swiglu", (3, 200), 0.5, 1.5)
    yield _fused_gate_up((4, 128))
    yield _fused_gate_up((6, 77))  # of more axes its backward gives two
    for shape in ((4, 128), (2, 3, 100), (3, 2500)):
        yield _softmax(shape)
    yield _sparsemax((4, 64), -1)
    yield _sparsemax((3, 5, 100), -1)
    yield _sparsemax((6, 33, 2), 1)
    yield _embedding(50, 64, 3, 7)
    yield _embedding(31, 100, 200)
