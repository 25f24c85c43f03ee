"""Runs one case: Liger's kernel on the simulator, our reference in float64, their differences."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mini_triton
import torch

from tests.fidelity.liger_cases.adaptations import adapted, as_if_on_gpu
from tests.fidelity.liger_cases.case import Case, Draw, Tensor

SEED = 20
_ON_GPU = {"mlp"}  # kernels that refuse tensors which say that they are not on a GPU


@dataclass
class Result:
    """What came of a case with one dtype.

    forward, backward: largest relative error of an output and of a gradient, None where there is
    none. launches: of Triton kernels, in both passes. seconds: of both passes, compiling included.
    failure: why it is not right, or None.
    """

    kernel: str
    variant: str
    dtype: str
    bound: float
    forward: float | None = None
    backward: float | None = None
    forward_launches: int = 0
    backward_launches: int = 0
    seconds: float = 0.0
    failure: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return vars(self).copy()


def compare(case: Case, dtype: torch.dtype) -> Result:
    """Runs a case; a failure is told in the result, never raised."""
    bound = case.bounds.get(dtype, 0.0)
    result = Result(case.kernel, case.variant, str(dtype).removeprefix("torch."), bound)
    start = time.perf_counter()
    try:
        _run(case, dtype, result, start)
    except Exception as error:
        result.seconds = result.seconds or time.perf_counter() - start
        first_line = str(error).strip().split("\n")[0][:300]
        result.failure = f"{type(error).__name__}: {first_line}"
        result.failure += f" ({_origin(error)})"
        return result
    for name, error in (("forward", result.forward), ("backward", result.backward)):
        if error is not None and not error <= bound:
            result.failure = f"{name}: error {error:.2g} over {bound:.2g}"
    return result


def _origin(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"


def _run(case: Case, dtype: torch.dtype, result: Result, start: float) -> None:
    inputs = case.inputs(Draw(dtype, SEED))
    mine = {name: _leaf(value.clone(), name, case) for name, value in inputs.items()}
    with adapted(), _gpu_if_asked(case), mini_triton.profile(host=False) as p:
        outputs = _flat(case.liger(**mine))
        result.forward_launches = len(p.launches)
        result.seconds = time.perf_counter() - start
        kept = [output.detach().clone() for output in outputs]
        theirs = {name: _leaf(_wide(value), name, case) for name, value in inputs.items()}
        expected = _flat(case.reference(**theirs))
        result.forward = _worst(kept, [e.detach() for e in expected])
        through = [i for i, e in enumerate(expected) if e.requires_grad]
        if not through:
            return
        draw = Draw(dtype, SEED + 1)
        directions = [draw.normal(*outputs[i].shape, dtype=outputs[i].dtype) for i in through]
        start = time.perf_counter()
        # Copies: ropes and gated activations write gradients over what they get.
        handed = [direction.clone() for direction in directions]
        gradients = _gradients([outputs[i] for i in through], mine, handed)
        result.seconds += time.perf_counter() - start
        result.backward_launches = len(p.launches) - result.forward_launches
    right = _gradients([expected[i] for i in through], theirs, [d.double() for d in directions])
    result.backward = _worst(gradients, right)


def _gpu_if_asked(case: Case) -> contextlib.AbstractContextManager[None]:
    return as_if_on_gpu() if case.kernel in _ON_GPU else contextlib.nullcontext()


def _leaf(value: Tensor, name: str, case: Case) -> Tensor:
    differentiable = value.is_floating_point() and name not in case.constant
    return value.requires_grad_(differentiable)


def _wide(value: Tensor) -> Tensor:
    return value.double() if value.is_floating_point() else value.clone()


def _flat(outputs: Any) -> list[Tensor]:
    found = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    return [output for output in found if output is not None]


def _gradients(
    outputs: list[Tensor], leaves: dict[str, Tensor], directions: list[Tensor]
) -> list[Tensor]:
    wanted = [leaf for leaf in leaves.values() if leaf.requires_grad]
    return list(torch.autograd.grad(outputs, wanted, directions))


def _worst(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """Largest |actual − expected| over the largest |expected|, of all pairs; integers: 0 or inf."""
    if len(actual) != len(expected):
        raise ValueError(f"{len(actual)} outputs, the reference has {len(expected)}")
    worst = 0.0
    for ours, right in zip(actual, expected, strict=True):
        if ours.shape != right.shape:
            raise ValueError(f"shape {tuple(ours.shape)}, reference {tuple(right.shape)}")
        if not right.is_floating_point():
            worst = max(worst, 0.0 if torch.equal(ours.to(right.dtype), right) else float("inf"))
            continue
        difference = (ours.double() - right).abs().max().item() if right.numel() else 0.0
        scale = right.abs().max().item() if right.numel() else 1.0
        error = difference / scale if scale else difference
        worst = max(worst, error if error == error else float("inf"))
    return worst
