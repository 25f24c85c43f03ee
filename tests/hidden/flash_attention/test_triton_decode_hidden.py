"""Task 11 at the edges: empty splits, 16-bit formats, large logits, strides, bytes."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Budget, Call

#: See the forward's test.
LARGE_LOGITS = 2e-4


class TestAttentionDecodeHidden(AssignmentTestCase):
    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        n_split: int,
        scale: float | None = None,
        rtol: float | None = None,
    ) -> Call:
        """attention_decode(q, k, v, n_split, scale): right, and computed by kernels."""
        call = self.student.call("flash_triton:attention_decode", q, k, v, n_split, scale=scale)
        o, lse = self.judge(call, q, k, v, scale, rtol)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, o=o, lse=lse)
        others = [self.like(t) for t in (q, k, v)]
        self.assert_follows(call, lambda again: self.judge(again, *others, scale, rtol), *others)
        return call

    def judge(
        self,
        call: Call,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        scale: float | None,
        rtol: float | None,
    ) -> tuple[Any, ...]:
        """o, in the dtype of q, and lse, in float32, against the definition."""
        o, lse = self.unpack(call, "o", "lse")
        expected_o, expected_lse = oracle.attention(q, k, v, scale=scale)
        rtol = rtol or oracle.roundings(q.dtype, 3)
        self.assert_close("o", o, expected_o, dtype=q.dtype, rtol=rtol)
        self.assert_close("lse", lse, expected_lse, dtype=torch.float32)
        return o, lse

    @weight(2)
    @number("11.5")
    @visibility("hidden")
    def test_edges(self):
        """More splits than keys; logits × 30 and a scale; float16 and bfloat16; d = 111; strides"""
        q, k, v = (self.randn(1, 2, n, 111) for n in (1, 5, 5))
        self.check(q, k, v, n_split=8)
        q, k, v = (self.randn(1, 2, n, 111) for n in (1, 150, 150))
        k[:, :, 70:] *= 3  # a split's maximum is far above another's
        self.check(30 * q, k, v, n_split=4, scale=0.05, rtol=LARGE_LOGITS)
        for dtype in (torch.bfloat16, torch.float16):
            q = self.randn(1, 1, 4, 32, dtype=dtype).transpose(1, 2)
            k = self.randn(1, 2, 90, 64, dtype=dtype)[..., 3:35]
            v = self.randn(1, 1, 90, 32, dtype=dtype).expand(1, 2, 90, 32)
            self.check(q, k, v, n_split=3)

    @weight(1)
    @number("11.6")
    @visibility("hidden")
    def test_bytes(self):
        """The budget for 37 keys in 5 splits, 3 keys in 4, and 2 queries for each of 6 heads"""
        for B, H, G, Nq, Nk, d, n_split, dtype in (
            (2, 6, 2, 2, 37, 20, 5, torch.float32),
            (1, 3, 1, 1, 3, 16, 4, torch.bfloat16),
        ):
            q = self.randn(B, H, Nq, d, dtype=dtype)
            k, v = (self.randn(B, G, Nk, d, dtype=dtype) for _ in range(2))
            sizes = {"B": B, "H": H, "Nq": Nq, "d": d, "n_split": n_split, "s": dtype.itemsize}
            loaded = "B*G*2*Nk*d*s + n_split*B*H*Nq*d*s + n_split*B*H*Nq*(d + 2)*4"
            stored = "n_split*B*H*Nq*(d + 2)*4 + B*H*Nq*(d*s + 4)"
            self.assert_traffic(
                self.check(q, k, v, n_split),
                loaded=Budget(loaded, **sizes, G=G, Nk=Nk),
                stored=Budget(stored, **sizes),
            )
