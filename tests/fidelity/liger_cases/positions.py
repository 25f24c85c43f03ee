"""Rotary position embeddings."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tests.fidelity.liger_cases.case import Case, Draw, Inputs, Tensor, constant, ops


def _half_turned(x: Tensor) -> Tensor:
    """(x₁, x₂) ↦ (−x₂, x₁) on the halves of the last axis."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x (B, H, T, D) rotated by angles whose cosine and sine are (B or 1, T, D)."""
    return x * cos[:, None] + _half_turned(x) * sin[:, None]


def _angles(draw: Draw, *shape: int, size: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines (*shape, size) whose two halves are equal."""
    angle = draw.normal(*shape, size // 2, scale=2.0, dtype=torch.float32)
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos().to(draw.dtype), angle.sin().to(draw.dtype)


def _heads(draw: Draw, batch: int, tokens: int, heads: tuple[int, int], size: int) -> Inputs:
    """q and k (B, H, T, D)."""
    q, k = (draw.normal(batch, h, tokens, size) for h in heads)
    return {"q": q, "k": k}


def _rope(batch: int, tokens: int, heads: tuple[int, int], size: int, rotary: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        cos, sin = _angles(draw, 1, tokens, size=rotary)
        return _heads(draw, batch, tokens, heads, size) | {"cos": cos, "sin": sin}

    def liger(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        return ops("rope").LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin)

    def reference(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> list[Tensor]:
        parts = [(x[..., :rotary], x[..., rotary:]) for x in (q, k)]
        return [torch.cat([rotated(left, cos, sin), right], dim=-1) for left, right in parts]

    words = f"({batch}, {heads}, {tokens}, {size}), {rotary} rotated"
    return Case("rope", words, inputs, liger, reference, constant("cos", "sin"))


def _mrope(batch: int, tokens: int, heads: tuple[int, int], sections: tuple[int, ...]) -> Case:
    size = 2 * sum(sections)

    def inputs(draw: Draw) -> Inputs:
        cos, sin = _angles(draw, 3, batch, tokens, size=size)
        return _heads(draw, batch, tokens, heads, size) | {"cos": cos, "sin": sin}

    def liger(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        function = ops("qwen2vl_mrope").LigerQwen2VLMRopeFunction
        return function.apply(q.clone(), k.clone(), cos, sin, sections)

    def of_sections(table: Tensor) -> Tensor:
        """Time, height and width angles, each for its section of the head's halves."""
        pieces = table.split([*sections, *sections], dim=-1)
        return torch.cat([piece[i % 3] for i, piece in enumerate(pieces)], dim=-1)

    def reference(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> list[Tensor]:
        return [rotated(x, of_sections(cos), of_sections(sin)) for x in (q, k)]

    words = f"({batch}, {heads}, {tokens}, {size}), sections {sections}"
    return Case("qwen2vl_mrope", words, inputs, liger, reference, constant("cos", "sin"))


def _llama4(batch: int, tokens: int, heads: tuple[int, int], size: int) -> Case:
    def inputs(draw: Draw) -> Inputs:
        q, k = (draw.normal(batch, tokens, h, size) for h in heads)
        angle = draw.normal(tokens, size // 2, scale=2.0, dtype=torch.float32)
        # The kernel takes complex numbers as pairs of float32.
        return {"q": q, "k": k, "turn": torch.polar(torch.ones_like(angle), angle)}

    def liger(q: Tensor, k: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
        return ops("llama4_rope").LigerLlama4RopeFunction.apply(q.clone(), k.clone(), turn)

    def reference(q: Tensor, k: Tensor, turn: Tensor) -> list[Tensor]:
        factor = turn.to(torch.complex128)[None, :, None]
        pairs = [torch.view_as_complex(x.unflatten(-1, (-1, 2))) for x in (q, k)]
        return [torch.view_as_real(pair * factor).flatten(-2) for pair in pairs]

    words = f"({batch}, {tokens}, {heads}, {size})"
    return Case("llama4_rope", words, inputs, liger, reference, constant("turn"))


def cases() -> Iterator[Case]:
    """All of this file."""
    yield _rope(2, 5, (4, 2), 64, 64)
    yield _rope(1, 7, (3, 1), 48, 48)
    yield _rope(2, 3, (5, 5), 64, 32)
    yield _mrope(2, 5, (4, 2), (8, 12, 12))
    yield _mrope(1, 3, (3, 1), (4, 6, 6))
    yield _llama4(2, 5, (4, 2), 64)
    yield _llama4(1, 7, (3, 3), 100)
