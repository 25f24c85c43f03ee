"""Task 9, the forward kernel: from one tile to blocks that do not fit, masks and bytes."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Budget, Call


class TestAttentionForward(AssignmentTestCase):
    """o and lse of `attention_forward`, and the bytes that its kernel moves."""

    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool = False,
        **blocks: int,
    ) -> Call:
        """attention_forward(q, k, v, …): right, and computed by kernels from q, k and v."""
        name = "flash_triton:attention_forward"
        call = self.student.call(name, q, k, v, causal=causal, **blocks)
        o, lse = self.judge(call, q, k, v, causal)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, o=o, lse=lse)
        q, k, v = self.like(q), self.like(k), self.like(v)
        self.assert_follows(call, lambda again: self.judge(again, q, k, v, causal), q, k, v)
        return call

    def judge(
        self, call: Call, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
    ) -> tuple[Any, ...]:
        """o, in the dtype of q, and lse, in float32, against the definition."""
        o, lse = self.unpack(call, "o", "lse")
        expected_o, expected_lse = oracle.attention(q, k, v, causal)
        rtol = oracle.roundings(q.dtype, 3)
        self.assert_close("o", o, expected_o, dtype=q.dtype, rtol=rtol)
        self.assert_close("lse", lse, expected_lse, dtype=torch.float32)
        return o, lse

    @weight(2)
    @number("9.1")
    @visibility("visible")
    def test_one_tile(self):
        """One head, 16 queries, 16 keys, d = 16: one tile"""
        q, k, v = (self.randn(1, 1, 16, 16) for _ in range(3))
        self.check(q, k, v, Br=16, Bc=16)

    @weight(2)
    @number("9.2")
    @visibility("visible")
    def test_many_tiles(self):
        """2 × 3 heads of 4 × 3 tiles: 64 queries, 96 keys, d = 32; 4 query heads on 2 key heads"""
        q, k, v = (self.randn(2, 3, n, 32) for n in (64, 96, 96))
        self.check(q, k, v, Br=16, Bc=32)
        q, k, v = (self.randn(1, heads, n, 16) for heads, n in ((4, 16), (2, 32), (2, 32)))
        self.check(q, k, v, Br=16, Bc=32)  # 4 query heads on 2 key heads

    @weight(2)
    @number("9.3")
    @visibility("visible")
    def test_any_size(self):
        """37 queries, 53 keys, d = 40: no block divides them; 150 in your own; 4,112 keys"""
        q, k, v = (self.randn(1, 2, n, 40) for n in (37, 53, 53))
        self.check(q, k, v, Br=16, Bc=16)
        q, k, v = (self.randn(1, 2, 150, 40) for _ in range(3))
        self.check(q, k, v)
        q, k, v = (self.randn(1, 1, n, 16) for n in (16, oracle.LONG, oracle.LONG))
        self.check(q, k, v, Br=16, Bc=64)

    @weight(2)
    @number("9.4")
    @visibility("visible")
    def test_causal(self):
        """causal: 40 queries, 40 keys; 20 at the end of 53 keys; 30, of which 18 see no key"""
        for Nq, Nk in ((40, 40), (20, 53), (30, 12)):  # the last: 18 queries that see no key
            q, k, v = (self.randn(1, 2, n, 16) for n in (Nq, Nk, Nk))
            self.check(q, k, v, causal=True, Br=16, Bc=16)

    @weight(1)
    @number("9.5")
    @visibility("visible")
    def test_16_bit(self):
        """bfloat16 and float16: o in the same, lse in float32"""
        for dtype in (torch.bfloat16, torch.float16):
            q, k, v = (self.randn(1, 2, n, 32, dtype=dtype) for n in (24, 40, 40))
            self.check(q, k, v, Br=16, Bc=16)

    @weight(3)
    @number("9.6")
    @visibility("visible")
    def test_bytes(self):
        """q is loaded once, k and v once a block of queries that sees them; o and lse are stored"""
        B, H, d = 1, 2, 24
        for Nq, Nk, Br in ((64, 48, 16), (40, 56, 32)):
            q, k, v = (self.randn(B, H, n, d) for n in (Nq, Nk, Nk))
            sizes = {"B": B, "H": H, "Nq": Nq, "d": d, "s": 4}
            self.assert_traffic(
                self.check(q, k, v, Br=Br, Bc=16),
                loaded=Budget("B*H*(Nq + 2*cdiv(Nq, Br)*Nk)*d*s", **sizes, Nk=Nk, Br=Br),
                stored=Budget("B*H*Nq*(d*s + 4)", **sizes),
            )
        # A causal mask: blocks of keys that no query of a block sees are not loaded.
        N, Br, Bc = 64, 16, 16
        q, k, v = (self.randn(B, H, N, d) for _ in range(3))
        K_rows = oracle.key_rows(N, N, Br, Bc, causal=True)
        sizes = {"B": B, "H": H, "Nq": N, "d": d, "s": 4}
        self.assert_traffic(
            self.check(q, k, v, causal=True, Br=Br, Bc=Bc),
            loaded=Budget("B*H*(Nq + 2*K_rows)*d*s", **sizes, K_rows=K_rows),
            stored=Budget("B*H*Nq*(d*s + 4)", **sizes),
        )
