"""Task 12 at the edges: `flash_attention`'s options, layouts that must be copied, masked rows."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Call


class TestFlashAttentionHidden(AssignmentTestCase):
    def check(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor, **options: Any
    ) -> None:
        """flash_attention(q, k, v, …) and its gradients: right, and computed by kernels."""
        name = "flash_triton:flash_attention"
        call = self.student.gradients(name, q, k, v, wrt=(0, 1, 2), dy=do, **options)
        o, dq, dk, dv = self.judge(call, q, k, v, do, options)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, o=o, dq=dq, dk=dk, dv=dv)
        others = [self.like(t) for t in (q, k, v, do)]
        self.assert_follows(call, lambda again: self.judge(again, *others, options), *others)

    def judge(
        self,
        call: Call,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        options: dict[str, Any],
    ) -> tuple[torch.Tensor, ...]:
        """o and the gradients, all in the dtype of q, against autograd of the definition."""
        names = ("o", "dq", "dk", "dv")
        right = (
            oracle.attention(q, k, v, **options)[0],
            *oracle.gradients(q, k, v, do, **options),
        )
        outputs = self.unpack(call, *names)
        for name, got, expected in zip(names, outputs, right, strict=True):
            # Of a query that sees a single key dq is 0, but for roundings of dP − delta.
            self.assert_close(name, got, expected, dtype=q.dtype, floor=5e-6)
        return outputs

    @weight(2)
    @number("12.4")
    @visibility("hidden")
    def test_edges(self):
        """A scale; last strides other than 1, which must be copied; queries that see no key"""
        # (…, d, N) in memory: the elements of a row lie N apart
        q, do = (self.randn(1, 4, 24, 30).mT for _ in range(2))
        k, v = (self.randn(1, 2, 24, 17).mT for _ in range(2))
        self.check(q, k, v, do, causal=True, scale=0.1)
