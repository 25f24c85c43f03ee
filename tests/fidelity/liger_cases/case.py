"""A comparison with a torch reference: inputs, Liger's call, our call, the bound."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch

Tensor = torch.Tensor
Inputs = dict[str, Tensor]

FLOATS = (torch.float32, torch.bfloat16)

#: Largest |error| ÷ largest |reference| of a tensor: 84 and 5 units in the last place.
BOUNDS: Mapping[torch.dtype, float] = MappingProxyType({torch.float32: 1e-5, torch.bfloat16: 2e-2})

#: For kernels that multiply float32 matrices by `tl.dot`: tf32 has 10 bits of mantissa.
TF32_BOUNDS: Mapping[torch.dtype, float] = MappingProxyType(
    {torch.float32: 2e-3, torch.bfloat16: 2e-2}
)


class Draw:
    """Random inputs of a case, the same in every run.

    Floats have the dtype under test, unless they are asked for in float32.
    """

    def __init__(self, dtype: torch.dtype, seed: int) -> None:
        self.dtype = dtype
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
        """Normal with standard deviation `scale`."""
        return (torch.randn(shape, generator=self._generator) * scale).to(dtype or self.dtype)

    def positive(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Uniform in [0.25, 1.25)."""
        return (torch.rand(shape, generator=self._generator) + 0.25).to(dtype or self.dtype)

    def whole(self, *shape: int, high: int, low: int = 0) -> Tensor:
        """Integers in [low, high), int64."""
        return torch.randint(low, high, shape, generator=self._generator)

    def labels(self, n: int, classes: int, ignored: int | None = None) -> Tensor:
        """Class numbers, int64 (n,); every fifth is `ignored` if that is given."""
        labels = self.whole(n, high=classes)
        if ignored is not None:
            labels[1::5] = ignored
        return labels


@dataclass(frozen=True)
class Case:
    """One kernel in one configuration.

    inputs: from a `Draw`, by name. liger and reference: functions of these; the reference gets its
    floats in float64. Both return a tensor or a tuple; None in it is left out. constant: inputs
    without a gradient. exact: integer outputs must be equal.
    """

    kernel: str
    variant: str
    inputs: Callable[[Draw], Inputs]
    liger: Callable[..., Any]
    reference: Callable[..., Any]
    constant: frozenset[str] = frozenset()
    dtypes: tuple[torch.dtype, ...] = FLOATS
    bounds: Mapping[torch.dtype, float] = field(default_factory=lambda: BOUNDS)


def ops(module: str) -> Any:
    """The module `liger_kernel.ops.<module>`, imported when a case runs."""
    return importlib.import_module(f"liger_kernel.ops.{module}")


def constant(*names: str) -> frozenset[str]:
    """Names of inputs without a gradient."""
    return frozenset(names)
