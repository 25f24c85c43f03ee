"""Task 9 at the edges: groups and strides, large logits, masked rows, any d, bytes everywhere."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Budget, Call

#: A float32 logit of up to 300 is off by a few times 300·2⁻²⁴ before exp makes a relative error of
#: it; and TF32, which is to be found out, is 2¹³ times as coarse as float32.
LARGE_LOGITS = 2e-4


class TestAttentionForwardHidden(AssignmentTestCase):
    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool = False,
        scale: float | None = None,
        rtol: float | None = None,
        **blocks: int,
    ) -> Call:
        """attention_forward(q, k, v, …): right, and computed by kernels from q, k and v."""
        name = "flash_triton:attention_forward"
        call = self.student.call(name, q, k, v, causal=causal, scale=scale, **blocks)
        o, lse = self.judge(call, q, k, v, causal, scale, rtol)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, o=o, lse=lse)
        others = [self.like(t) for t in (q, k, v)]
        self.assert_follows(
            call, lambda again: self.judge(again, *others, causal, scale, rtol), *others
        )
        return call

    def judge(
        self,
        call: Call,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool,
        scale: float | None,
        rtol: float | None,
    ) -> tuple[Any, ...]:
        """o, in the dtype of q, and lse, in float32, against the definition."""
        o, lse = self.unpack(call, "o", "lse")
        expected_o, expected_lse = oracle.attention(q, k, v, causal, scale=scale)
        rtol = rtol or oracle.roundings(q.dtype, 3)
        self.assert_close("o", o, expected_o, dtype=q.dtype, rtol=rtol)
        self.assert_close("lse", lse, expected_lse, dtype=torch.float32)
        return o, lse

    @weight(2)
    @number("9.7")
    @visibility("hidden")
    def test_layouts(self):
        """4 query heads on 2 key heads; strides of every kind; a scale"""
        q = self.randn(2, 20, 4, 24).transpose(1, 2)  # as projections leave it
        k = self.randn(2, 2, 70, 48)[:, :, ::2, 5:29]  # a slice of a larger cache
        v = self.randn(1, 2, 35, 24).expand(2, 2, 35, 24)  # a prefix that the batch shares
        self.check(q, k, v, causal=True, scale=0.3, Br=16, Bc=32)

    @weight(2)
    @number("9.8")
    @visibility("hidden")
    def test_edges(self):
        """Logits × 30; queries that see no key; one query; d = 1, 111; 16-bit sums that overflow"""
        q, k, v = (self.randn(1, 1, n, 40) for n in (33, 97, 97))
        # The first block's logits are 120 more than those of later blocks, or 120 less.
        q, k[..., 0] = 30 * q, 0
        q[:, :, ::2, 0], q[:, :, 1::2, 0], k[:, :, :16, 0] = 5, -5, 150
        self.check(q, k, v, rtol=LARGE_LOGITS, Br=16, Bc=16)
        for Nq, Nk, d in ((53, 20, 1), (1, 40, 111)):
            q, k, v = (self.randn(2, 1, n, d) for n in (Nq, Nk, Nk))
            self.check(q, k, v, causal=True, Br=16, Bc=32)
        # 256 values near 300 add up to more than float16 holds, before they are divided by l.
        q, k = (self.randn(1, 1, n, 16, scale=0.1).half() for n in (16, 256))
        self.check(q, k, (300 + self.randn(1, 1, 256, 16)).half(), Br=16, Bc=64)

    @weight(2)
    @number("9.9")
    @visibility("hidden")
    def test_bytes(self):
        """The budget under a causal mask, in groups, where no block fits, and with masked rows"""
        for B, H, G, Nq, Nk, d, Br, Bc, causal, dtype in (
            (1, 2, 1, 40, 75, 20, 16, 32, True, torch.float32),
            (2, 1, 1, 61, 30, 33, 32, 16, True, torch.bfloat16),
        ):
            q = self.randn(B, H, Nq, d, dtype=dtype)
            k, v = (self.randn(B, G, Nk, d, dtype=dtype) for _ in range(2))
            sizes = {"B": B, "H": H, "Nq": Nq, "d": d, "s": dtype.itemsize}
            K_rows = oracle.key_rows(Nq, Nk, Br, Bc, causal)
            self.assert_traffic(
                self.check(q, k, v, causal=causal, Br=Br, Bc=Bc),
                loaded=Budget("B*H*(Nq + 2*K_rows)*d*s", **sizes, K_rows=K_rows),
                stored=Budget("B*H*Nq*(d*s + 4)", **sizes),
            )
