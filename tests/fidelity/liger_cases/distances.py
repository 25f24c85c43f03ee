"""Distances between distributions, as distillation uses them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional

from tests.fidelity.liger_cases.case import BOUNDS, Case, Draw, Inputs, Tensor, constant, ops

IGNORED = -100


def jensen_shannon(student: Tensor, teacher: Tensor, beta: float) -> Tensor:
    """Generalized JSD of log-probabilities, per element: β KL(P‖M) + (1−β) KL(Q‖M).

    P the teacher, Q the student, M = βP + (1−β)Q; β = 0 and 1: KL(P‖Q) and KL(Q‖P)
    (Agarwal et al. 2024, eq. 1).
    """
    p, q = teacher.exp(), student.exp()
    if beta == 0:
        return p * (teacher - student)
    if beta == 1:
        return q * (student - teacher)
    middle = (beta * p + (1 - beta) * q).log()
    return beta * p * (teacher - middle) + (1 - beta) * q * (student - middle)


def kept_mean(values: Tensor, labels: Tensor | None) -> Tensor:
    """Sum of the rows (n, …) whose label is not ignored, over their number."""
    if labels is None:
        return values.sum() / values.shape[0]
    kept = labels != IGNORED
    return values[kept].sum() / kept.sum()


def _jsd(shape: tuple[int, int], beta: float, labelled: bool) -> Case:
    rows, classes = shape

    def inputs(draw: Draw) -> Inputs:
        student, teacher = (draw.normal(*shape).float().log_softmax(-1) for _ in range(2))
        found = {"student": student.to(draw.dtype), "teacher": teacher.to(draw.dtype)}
        return found | ({"labels": draw.labels(rows, classes, IGNORED)} if labelled else {})

    def liger(student: Tensor, teacher: Tensor, labels: Tensor | None = None) -> Tensor:
        return ops("jsd").LigerJSDFunction.apply(student.clone(), teacher, labels, beta, IGNORED)

    def reference(student: Tensor, teacher: Tensor, labels: Tensor | None = None) -> Tensor:
        return kept_mean(jensen_shannon(student, teacher, beta), labels)

    variant = f"{shape}, β = {beta}{', labels' * labelled}"
    return Case("jsd", variant, inputs, liger, reference, constant("teacher", "labels"))


def _fused_linear_jsd(rows: int, size: int, classes: int, beta: float, labelled: bool) -> Case:
    def inputs(draw: Draw) -> Inputs:
        found = {}
        for side in ("student", "teacher"):
            found[side] = draw.normal(rows, size)
            found[f"{side}_weight"] = draw.normal(classes, size, scale=size**-0.5)
        return found | ({"labels": draw.labels(rows, classes, IGNORED)} if labelled else {})

    def liger(
        student: Tensor,
        student_weight: Tensor,
        teacher: Tensor,
        teacher_weight: Tensor,
        labels: Tensor | None = None,
    ) -> Tensor:
        function = ops("fused_linear_jsd").LigerFusedLinearJSDFunction
        operands = (student, student_weight, teacher, teacher_weight, labels)
        return function.apply(*operands, beta, IGNORED, 1.5)

    def reference(
        student: Tensor,
        student_weight: Tensor,
        teacher: Tensor,
        teacher_weight: Tensor,
        labels: Tensor | None = None,
    ) -> Tensor:
        q, p = (
            (x @ w.T / 1.5).log_softmax(-1)
            for x, w in ((student, student_weight), (teacher, teacher_weight))
        )
        return kept_mean(jensen_shannon(q, p, beta), labels)

    return Case(
        "fused_linear_jsd",
        f"{rows} × {size} → {classes}, β = {beta}{', labels' * labelled}",
        inputs,
        liger,
        reference,
        constant("teacher", "teacher_weight", "labels"),
        bounds=BOUNDS | {torch.bfloat16: 4e-2},
    )


def _kl_div(shape: tuple[int, int], reduction: str, logarithmic: bool) -> Case:
    def inputs(draw: Draw) -> Inputs:
        y, target = (draw.normal(*shape).float().log_softmax(-1) for _ in range(2))
        target = target if logarithmic else target.exp()
        return {"y": y.to(draw.dtype), "target": target.to(draw.dtype)}

    def liger(y: Tensor, target: Tensor) -> Tensor:
        return ops("kl_div").LigerKLDivLossFunction.apply(y, target, reduction, logarithmic)

    def reference(y: Tensor, target: Tensor) -> Tensor:
        each = functional.kl_div(y, target, reduction="none", log_target=logarithmic)
        divisor = {"batchmean": shape[0], "mean": each.numel()}.get(reduction, 1)
        return each if reduction == "none" else each.sum() / divisor

    variant = f"{shape} {reduction}{', log target' * logarithmic}"
    return Case("kl_div", variant, inputs, liger, reference, constant("target"))


def _fused_linear_kl_div(rows: int, size: int, classes: int, reduction: str) -> Case:
    def inputs(draw: Draw) -> Inputs:
        return {
            "x": draw.normal(rows, size),
            "w": draw.normal(classes, size, scale=size**-0.5),
            "target": draw.normal(rows, classes).float().softmax(-1).to(draw.dtype),
            "labels": draw.labels(rows, classes, IGNORED),
        }

    def liger(x: Tensor, w: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        function = ops("fused_linear_kl_div").LigerFusedLinearKLDivFunction
        return function.apply(x, w, target, labels, reduction, IGNORED, 1.5)

    def reference(x: Tensor, w: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        kept = labels != IGNORED
        logp = (x @ w.T / 1.5).log_softmax(-1)[kept]
        return functional.kl_div(logp, target[kept], reduction=reduction)

    return Case(
        "fused_linear_kl_div",
        f"{rows} × {size} → {classes} {reduction}",
        inputs,
        liger,
        reference,
        constant("target", "labels"),
        bounds=BOUNDS | {torch.bfloat16: 4e-2},
    )


def _tvd(shape: tuple[int, int], reduction: str, labelled: bool) -> Case:
    rows, classes = shape

    def inputs(draw: Draw) -> Inputs:
        p, q = (draw.normal(*shape).float().softmax(-1).to(draw.dtype) for _ in range(2))
        found = {"p": p, "q": q}
        return found | ({"labels": draw.labels(rows, classes, IGNORED)} if labelled else {})

    def liger(p: Tensor, q: Tensor, labels: Tensor | None = None) -> Tensor:
        return ops("tvd").LigerTVDLossFunction.apply(p, q, labels, reduction, IGNORED)

    def reference(p: Tensor, q: Tensor, labels: Tensor | None = None) -> Tensor:
        distance = (p - q).abs() / 2
        if reduction == "batchmean":
            return kept_mean(distance, labels)
        if labels is not None:
            distance = distance * (labels != IGNORED)[:, None]
        return distance.sum() if reduction == "sum" else distance

    variant = f"{shape} {reduction}{', labels' * labelled}"
    return Case("tvd", variant, inputs, liger, reference, constant("q", "labels"))


def _fused_ce_tvd(shape: tuple[int, int]) -> Case:
    def inputs(draw: Draw) -> Inputs:
        student, teacher = draw.normal(*shape), draw.normal(*shape)
        return {"student": student, "teacher": teacher, "target": draw.labels(*shape, IGNORED)}

    def liger(student: Tensor, teacher: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        function = ops("fused_ce_tvd").LigerFusedCETVDFunction
        return function.apply(student, teacher, target, IGNORED)

    def reference(student: Tensor, teacher: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        loss = functional.cross_entropy(student, target, ignore_index=IGNORED, reduction="none")
        distance = (student.softmax(-1) - teacher.softmax(-1)).abs().sum(-1) / 2
        return loss, distance * (target != IGNORED)

    others = constant("teacher", "target")
    return Case("fused_ce_tvd", f"{shape}", inputs, liger, reference, others)


def cases() -> Iterator[Case]:
    """All of this file."""
    for beta in (0.0, 0.1, 0.5, 1.0):
        yield _jsd((6, 100), beta, False)
    yield _jsd((7, 333), 0.5, True)
    yield _fused_linear_jsd(10, 32, 100, 0.5, False)
    yield _fused_linear_jsd(7, 20, 77, 0.1, True)
    for reduction in ("batchmean", "sum", "mean", "none"):
        yield _kl_div((5, 100), reduction, False)
    yield _kl_div((3, 1025), "batchmean", True)
    yield _fused_linear_kl_div(10, 32, 100, "batchmean")
    yield _fused_linear_kl_div(7, 20, 77, "sum")
    for reduction in ("batchmean", "sum", "none"):
        yield _tvd((5, 100), reduction, False)
    yield _tvd((6, 333), "batchmean", True)
    yield _fused_ce_tvd((6, 100))
    yield _fused_ce_tvd((3, 17_000))
