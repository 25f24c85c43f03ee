"""The autograd function returns no gradient for g.

breaks: 3
"""

import torch


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g, eps):
        if x.dim() == 0 or x.shape[-1] == 0:
            raise ValueError(
                f"x must be (..., N) with N at least 1, but has shape {tuple(x.shape)}"
            )
        g = g.contiguous()
        y, r = rmsnorm_forward(as_rows(x), g, eps)
        ctx.save_for_backward(x, g, r)
        return y.resize_(x.shape)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, g, r = ctx.saved_tensors
        dx, _ = rmsnorm_backward(as_rows(x), g, r, as_rows(dy))
        return dx.view(dy.shape), None, None  # wrong: g has a gradient, too
