"""The backward pass hands do on as it comes, whatever its strides.

breaks: 12
"""

import torch


class FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, scale):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        o, lse = attention_forward(q, k, v, causal, scale)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.options = causal, scale
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        # wrong: the kernels want a last stride of 1
        dq, dk, dv = attention_backward(q, k, v, o, lse, do, *ctx.options)
        return dq, dk, dv, None, None
