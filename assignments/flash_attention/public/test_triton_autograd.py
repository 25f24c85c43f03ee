"""Task 12, the autograd function: `FlashAttention.apply` and `flash_attention`."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Call


class TestFlashAttention(AssignmentTestCase):
    """o, dq, dk and dv of `FlashAttention.apply`, for tensors as a model has them."""

    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        causal: bool = False,
    ) -> None:
        """FlashAttention.apply and its gradients: right, and computed by kernels."""
        name = "flash_triton:FlashAttention.apply"
        call = self.student.gradients(name, q, k, v, causal, None, wrt=(0, 1, 2), dy=do)
        o, dq, dk, dv = self.judge(call, q, k, v, do, causal)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, o=o, dq=dq, dk=dk, dv=dv)
        others = [self.like(t) for t in (q, k, v, do)]
        self.assert_follows(call, lambda again: self.judge(again, *others, causal), *others)

    def judge(
        self,
        call: Call,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        causal: bool,
    ) -> tuple[torch.Tensor, ...]:
        """o and the gradients, all in the dtype of q, against autograd of the definition."""
        names = ("o", "dq", "dk", "dv")
        expected = (oracle.attention(q, k, v, causal)[0], *oracle.gradients(q, k, v, do, causal))
        outputs = self.unpack(call, *names)
        rtol = oracle.roundings(q.dtype, 8)
        for name, got, right in zip(names, outputs, expected, strict=True):
            self.assert_close(name, got, right, dtype=q.dtype, rtol=rtol)
        return outputs

    @weight(2)
    @number("12.1")
    @visibility("visible")
    def test_gradients(self):
        """o, and the gradients of q, k and v"""
        q, k, v, do = (self.randn(1, 2, 150, 16) for _ in range(4))  # of several blocks each
        self.check(q, k, v, do)

    @weight(1)
    @number("12.2")
    @visibility("visible")
    def test_layouts(self):
        """(batch, N, heads, d) with heads and N swapped; o.sum().backward(): do is 1, strides 0"""
        q, k, v = (self.randn(1, 20, 2, 16).transpose(1, 2) for _ in range(3))
        self.check(q, k, v, self.ones(1).expand(q.shape))

    @weight(1)
    @number("12.3")
    @visibility("visible")
    def test_16_bit(self):
        """bfloat16, causal, 4 query heads on 2 key heads, 9 queries at the end of 25 keys"""
        q, do = (self.randn(1, 4, 9, 32, dtype=torch.bfloat16) for _ in range(2))
        k, v = (self.randn(1, 2, 25, 32, dtype=torch.bfloat16) for _ in range(2))
        self.check(q, k, v, do, causal=True)
