"""What the tests expect: RMSNorm from its definition, in float64, differentiated by PyTorch.

Nothing here is derived by hand, so no slip in a derivation can be in both a kernel and its test.
Inputs are taken as they are, rounded to whatever dtype they have; only then are they widened.
"""

import torch


def rmsnorm(x: torch.Tensor, g: torch.Tensor, eps: float) -> torch.Tensor:
    """y = x / sqrt(mean(x², last axis) + eps) · g for x (..., N), g (N,); y (..., N) float64."""
    x, g = x.double(), g.double()
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps) * g


def inverse_rms(x: torch.Tensor, eps: float) -> torch.Tensor:
    """r = 1 / sqrt(mean(x², last axis) + eps) for x (..., N); r (...) float64."""
    return 1 / torch.sqrt(x.double().square().mean(dim=-1) + eps)


def gradients(
    x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """dx (..., N) and dg (N,), float64, for dy (..., N): by autograd, through `rmsnorm`."""
    x, g = (t.detach().double().requires_grad_() for t in (x, g))
    with torch.enable_grad():
        dx, dg = torch.autograd.grad(rmsnorm(x, g, eps), (x, g), dy.double())
    return dx, dg
