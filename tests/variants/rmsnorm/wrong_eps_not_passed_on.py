"""The autograd function runs the forward with 1e-5, whatever ε it is given.

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
        rows, g = as_rows(x), g.contiguous()
        y, r = rmsnorm_forward(rows, g, 1e-5)  # wrong: eps is not passed on
        ctx.save_for_backward(rows, g, r)
        return y.view(x.shape)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        rows, g, r = ctx.saved_tensors
        dx, dg_partial = rmsnorm_backward(rows, g, r, as_rows(dy))
        return dx.view(dy.shape), dg_partial.sum(0).to(g.dtype), None
