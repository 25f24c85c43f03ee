"""Cross-entropies and the policy-gradient loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from tests.fidelity.liger_cases.case import BOUNDS, Case, Draw, Inputs, Tensor, constant, ops

IGNORED = -100


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    class_weight: Tensor | None,
    lse_square_scale: float,
    label_smoothing: float,
    reduction: str,
    softcap: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Loss with z-loss (PaLM, section 5): (loss, z-loss, accuracy, predicted tokens)."""
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    loss = functional.cross_entropy(
        logits,
        target,
        class_weight,
        ignore_index=IGNORED,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    kept = target != IGNORED
    z_loss = lse_square_scale * torch.logsumexp(logits, dim=-1).square() * kept
    predicted = torch.where(kept, logits.argmax(-1), -1)
    accuracy = (predicted == target).double()
    if reduction == "mean":
        z_loss, accuracy = z_loss.sum() / kept.sum(), accuracy.sum() / kept.sum()
    elif reduction == "sum":
        z_loss = z_loss.sum()
    return loss + z_loss, z_loss.detach(), accuracy, predicted


def _cross_entropy(shape: tuple[int, int], words: str = "", **options: Any) -> Case:
    weighted = options.pop("weighted", False)
    ignored = options.pop("ignored", None)
    reduction = options.pop("reduction", "mean")
    scale, smoothing = options.pop("z", 0.0), options.pop("smoothing", 0.0)
    softcap, extras = options.pop("softcap", None), options.pop("extras", False)
    assert not options

    def inputs(draw: Draw) -> Inputs:
        rows, classes = shape
        found = {"logits": draw.normal(*shape, scale=2.0)}
        found["target"] = draw.labels(rows, classes, ignored)
        return found | ({"weight": draw.positive(classes)} if weighted else {})

    def liger(logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Any:
        function = ops("cross_entropy").LigerCrossEntropyFunction
        found = function.apply(
            logits.clone(),
            target,
            weight,
            IGNORED,
            scale,
            smoothing,
            reduction,
            softcap,
            *[extras] * 3,
        )
        return found if extras else found[:1]

    def reference(logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Any:
        found = cross_entropy(logits, target, weight, scale, smoothing, reduction, softcap)
        return found if extras else found[:1]

    variant = f"{shape}{', ' * bool(words)}{words}"
    return Case("cross_entropy", variant, inputs, liger, reference, constant("target", "weight"))


def _fused_linear(rows: int, size: int, classes: int, words: str = "", **options: Any) -> Case:
    ignored, with_bias = options.get("ignored"), options.get("bias", False)
    scale, smoothing = options.get("z", 0.0), options.get("smoothing", 0.0)
    softcap = options.get("softcap")

    def inputs(draw: Draw) -> Inputs:
        found = {"x": draw.normal(rows, size), "w": draw.normal(classes, size, scale=size**-0.5)}
        found["target"] = draw.labels(rows, classes, ignored)
        return found | ({"b": draw.normal(classes)} if with_bias else {})

    def liger(x: Tensor, w: Tensor, target: Tensor, b: Tensor | None = None) -> Any:
        function = ops("fused_linear_cross_entropy").LigerFusedLinearCrossEntropyFunction
        return function.apply(x, w, target, b, None, IGNORED, scale, smoothing, "mean", softcap)[0]

    def reference(x: Tensor, w: Tensor, target: Tensor, b: Tensor | None = None) -> Any:
        logits = functional.linear(x, w, b)
        return cross_entropy(logits, target, None, scale, smoothing, "mean", softcap)[0]

    variant = f"{rows} × {size} → {classes}{', ' * bool(words)}{words}"
    return Case(
        "fused_linear_cross_entropy",
        variant,
        inputs,
        liger,
        reference,
        constant("target"),
        # Logits and the sum over chunks of the weight's gradient are kept in bfloat16.
        bounds=BOUNDS | {torch.bfloat16: 4e-2},
    )


def _vocab_parallel(shape: tuple[int, int, int], smoothing: float, formula: str) -> Case:
    def inputs(draw: Draw) -> Inputs:
        target = draw.labels(shape[0] * shape[1], shape[2], IGNORED)
        return {"logits": draw.normal(*shape, scale=2.0), "target": target.view(shape[:2])}

    def liger(logits: Tensor, target: Tensor) -> Tensor:
        function = ops("vocab_parallel_cross_entropy").LigerVocabParallelCEFunction
        return function.apply(logits, target, None, IGNORED, smoothing, formula, "global")

    def reference(logits: Tensor, target: Tensor) -> Tensor:
        classes = shape[2]
        alpha = smoothing * classes / (classes - 1) if formula == "megatron" else smoothing
        flat = functional.cross_entropy(
            logits.flatten(0, 1),
            target.flatten(),
            ignore_index=IGNORED,
            reduction="none",
            label_smoothing=alpha,
        )
        return flat.view(target.shape)

    variant = f"{shape} smoothing {smoothing} ({formula})"
    kernel = "vocab_parallel_cross_entropy"
    return Case(kernel, variant, inputs, liger, reference, constant("target"))


# ------------------------------------------------------------------------------ policy gradient
TEMPERATURE, LOW, HIGH, HOT, COLD = 0.9, 0.2, 0.4, 1.0, 1.05


def policy_loss(
    logits: Tensor,
    old: Tensor,
    frozen: Tensor,
    ids: Tensor,
    advantages: Tensor,
    mask: Tensor,
    beta: float,
    kind: str,
    level: str,
) -> tuple[Tensor, Tensor | None]:
    """GRPO (DeepSeekMath, eq. 3) and its relatives: (loss, mean KL)."""
    logp = (logits[:, :-1] / TEMPERATURE).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    gain, lengths = advantages[:, None], mask.sum(-1, keepdim=True).clamp(min=1)
    log_ratio = logp - old
    if level == "sequence":
        log_ratio = (log_ratio * mask).sum(-1, keepdim=True) / lengths
    ratio = log_ratio.exp().expand_as(logp)
    if kind == "cispo":
        loss = -ratio.clamp(max=HIGH).detach() * gain * logp
    elif kind == "sapo":
        heat = torch.where(gain > 0, HOT, COLD)
        loss = -torch.sigmoid(heat * (ratio - 1)) * 4 / heat * gain
    else:
        loss = -torch.minimum(ratio * gain, ratio.clamp(1 - LOW, 1 + HIGH) * gain)
    divergence = (frozen - logp).exp() - (frozen - logp) - 1
    loss = loss + beta * divergence
    mean_divergence = (divergence * mask).sum() / mask.sum() if beta else None
    if kind in ("grpo", "sapo"):
        total = ((loss * mask).sum(-1) / lengths[:, 0]).mean()
    elif kind == "luspo":
        total = (loss * mask * lengths).mean()
    elif kind == "dr_grpo":
        total = (loss * mask).sum() / mask.numel()
    else:
        total = (loss * mask).sum() / mask.sum()
    return total, mean_divergence if mean_divergence is None else mean_divergence.detach()


def _policy(shape: tuple[int, int, int], kind: str, beta: float, level: str = "token") -> Case:
    batch, length, classes = shape

    def inputs(draw: Draw) -> Inputs:
        logits = draw.normal(batch, length + 1, classes)
        ids = draw.whole(batch, length, high=classes)
        now = (logits[:, :-1].float() / TEMPERATURE).log_softmax(-1).gather(-1, ids[..., None])
        near = [
            now[..., 0] + draw.normal(batch, length, scale=0.3, dtype=torch.float32)
            for _ in range(2)
        ]
        mask = torch.ones(batch, length, dtype=torch.int64)
        mask[0, -2:] = 0
        return {
            "logits": logits,
            "old": near[0],
            "frozen": near[1],
            "ids": ids,
            "advantages": draw.normal(batch, dtype=torch.float32),
            "mask": mask,
        }

    def liger(
        logits: Tensor, old: Tensor, frozen: Tensor, ids: Tensor, advantages: Tensor, mask: Tensor
    ) -> Any:
        found = ops("grpo_loss").GrpoLossFunction.apply(
            logits.clone(),
            old,
            frozen,
            ids,
            advantages,
            mask,
            TEMPERATURE,
            beta,
            LOW,
            HIGH,
            False,
            kind,
            None,
            True,
            level,
            HOT,
            COLD,
        )
        return found[:2]

    def reference(
        logits: Tensor, old: Tensor, frozen: Tensor, ids: Tensor, advantages: Tensor, mask: Tensor
    ) -> Any:
        return policy_loss(logits, old, frozen, ids, advantages, mask.double(), beta, kind, level)

    others = constant("old", "frozen", "ids", "advantages", "mask")
    variant = f"{shape} {kind}, β = {beta}, by {level}"
    return Case("grpo_loss", variant, inputs, liger, reference, others)


def cases() -> Iterator[Case]:
    """All of this file."""
    yield _cross_entropy((6, 100))
    yield _cross_entropy((7, 1000), "ignored rows", ignored=IGNORED)
    yield _cross_entropy((5, 333), "sum", ignored=IGNORED, reduction="sum")
    yield _cross_entropy((5, 40), "none", reduction="none")
    yield _cross_entropy((8, 200), "smoothing, z-loss", smoothing=0.1, z=1e-2)
    yield _cross_entropy((4, 129), "softcap", softcap=3.0)
    yield _cross_entropy((9, 77), "weights", weighted=True, smoothing=0.2, ignored=IGNORED)
    yield _cross_entropy((10, 50), "all outputs", extras=True, z=1e-3, ignored=IGNORED)
    yield _cross_entropy((2, 40_000), "more than one block")
    yield _fused_linear(12, 32, 100)
    yield _fused_linear(9, 20, 333, "bias, ignored rows", bias=True, ignored=IGNORED)
    yield _fused_linear(7, 64, 80, "smoothing, z-loss, softcap", smoothing=0.1, z=1e-3, softcap=5.0)
    yield _vocab_parallel((3, 2, 100), 0.0, "pytorch")
    yield _vocab_parallel((4, 3, 77), 0.1, "pytorch")
    yield _vocab_parallel((4, 3, 77), 0.1, "megatron")
    for kind in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo"):
        yield _policy((3, 7, 100), kind, 0.04)
    yield _policy((2, 5, 333), "grpo", 0.0)
    yield _policy((3, 7, 100), "grpo", 0.04, "sequence")
