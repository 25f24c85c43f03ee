"""Bessel functions of whole order, by the recurrence 2n/x·Fₙ = Fₙ₋₁ + Fₙ₊₁; float64.

Source: Numerical Recipes, section 6.5; DLMF 10.6.1 and 10.74(iv).
"""

from __future__ import annotations

import torch

from mini_triton.errors import KernelError

Tensor = torch.Tensor

#: Orders beyond it are refused: a recurrence takes as many steps as the order says.
MOST = 1_000
_RESCALE = 2.0**500


def _orders(n: Tensor) -> int:
    highest = int(n.abs().max()) if n.numel() else 0
    if highest > MOST:
        raise KernelError(
            f"a Bessel function of order {highest} is asked for; the simulator has those up to "
            f"order {MOST}"
        )
    return highest


def second_kind(n: Tensor, x: Tensor) -> Tensor:
    """Yₙ(x) by the upward recurrence, which is stable."""
    below, here = torch.special.bessel_y0(x), torch.special.bessel_y1(x)
    result = torch.where(n == 0, below, here)
    for k in range(1, _orders(n)):
        below, here = here, 2.0 * k / x * here - below
        result = torch.where(n == k + 1, here, result)
    return torch.where(n < 0, torch.nan, result)


def first_kind(n: Tensor, x: Tensor) -> Tensor:
    """Jₙ(x): upward for n < |x|, else downward (Miller), normalised by J₀ + 2ΣJ₂ₖ = 1."""
    highest = _orders(n)
    size = x.abs()
    below, here = torch.special.bessel_j0(size), torch.special.bessel_j1(size)
    upward = torch.where(n == 0, below, here)
    for k in range(1, highest):
        below, here = here, 2.0 * k / size * here - below
        upward = torch.where(n == k + 1, here, upward)
    result = torch.where(n < 2, upward, torch.where(n < size, upward, _downward(n, size, highest)))
    result = torch.where((x < 0) & (n % 2 == 1), -result, result)
    return torch.where(n < 0, torch.nan, result)


def _downward(n: Tensor, size: Tensor, highest: int) -> Tensor:
    start = 2 * ((highest + int((40.0 * highest) ** 0.5)) // 2 + 8)
    inside = torch.where((size > 0) & (size <= highest), size, torch.ones_like(size))
    above, here = torch.zeros_like(inside), torch.full_like(inside, 1.0 / _RESCALE)
    found, total = torch.zeros_like(inside), torch.zeros_like(inside)
    for k in range(start, 0, -1):
        above, here = here, 2.0 * k / inside * here - above
        large = here.abs() > _RESCALE
        scale = torch.where(large, 1.0 / _RESCALE, 1.0)
        above, here, found, total = above * scale, here * scale, found * scale, total * scale
        if k - 1 and (k - 1) % 2 == 0:
            total = total + 2.0 * here
        found = torch.where(n == k - 1, here, found)
    return torch.where(size > 0, found / (total + here), torch.zeros_like(found))
