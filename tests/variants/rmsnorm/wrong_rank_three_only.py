"""The autograd function takes every x for (batch, tokens, N).

breaks: 3
"""

import torch


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g, eps):
        B, T, N = x.shape  # wrong: a matrix has two sizes, a row one
        g = g.contiguous()
        y, r = rmsnorm_forward(as_rows(x), g, eps)
        ctx.save_for_backward(x, g, r)
        return y.view(B, T, N)

    @staticmethod
    def backward(ctx, dy):
        x, g, r = ctx.saved_tensors
        dx, dg_partial = rmsnorm_backward(as_rows(x), g, r, as_rows(dy))
        return dx.view(dy.shape), dg_partial.sum(0).to(g.dtype), None
