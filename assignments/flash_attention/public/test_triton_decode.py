"""Task 11, decoding: the keys in splits, and a second kernel that merges them."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Budget, Call


class TestAttentionDecode(AssignmentTestCase):
    """o and lse of `attention_decode`, and the bytes that its kernels move."""

    def check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, n_split: int) -> Call:
        """attention_decode(q, k, v, n_split): right, and computed by kernels from q, k and v."""
        call = self.student.call("flash_triton:attention_decode", q, k, v, n_split)
        o, lse = self.judge(call, q, k, v)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, o=o, lse=lse)
        q, k, v = self.like(q), self.like(k), self.like(v)
        self.assert_follows(call, lambda again: self.judge(again, q, k, v), q, k, v)
        return call

    def judge(
        self, call: Call, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[Any, ...]:
        """o, in the dtype of q, and lse, in float32, against the definition."""
        o, lse = self.unpack(call, "o", "lse")
        expected_o, expected_lse = oracle.attention(q, k, v)
        rtol = oracle.roundings(q.dtype, 3)
        self.assert_close("o", o, expected_o, dtype=q.dtype, rtol=rtol)
        self.assert_close("lse", lse, expected_lse, dtype=torch.float32)
        return o, lse

    def inputs(
        self, B: int, H: int, G: int, Nq: int, Nk: int, d: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q (B, H, Nq, d), and k and v (B, G, Nk, d)."""
        return self.randn(B, H, Nq, d), self.randn(B, G, Nk, d), self.randn(B, G, Nk, d)

    @weight(1)
    @number("11.1")
    @visibility("visible")
    def test_one_split(self):
        """One query, one split: 64 keys; 4,112 keys"""
        self.check(*self.inputs(B=1, H=1, G=1, Nq=1, Nk=64, d=16), n_split=1)
        self.check(*self.inputs(B=1, H=1, G=1, Nq=1, Nk=oracle.LONG, d=16), n_split=1)

    @weight(2)
    @number("11.2")
    @visibility("visible")
    def test_splits(self):
        """2 × 3 heads, 250 keys in 4 splits; 100 keys in 3 splits"""
        for B, G, Nk, n_split in ((2, 3, 250, 4), (1, 2, 100, 3)):
            call = self.check(*self.inputs(B, G, G, Nq=1, Nk=Nk, d=40), n_split)
            self.assert_programs(call, n_split * B * G, "n_split·B·G")

    @weight(1)
    @number("11.3")
    @visibility("visible")
    def test_groups(self):
        """6 query heads on 2 key heads, 3 queries each"""
        self.check(*self.inputs(B=2, H=6, G=2, Nq=3, Nk=100, d=16), n_split=3)

    @weight(1)
    @number("11.4")
    @visibility("visible")
    def test_bytes(self):
        """k and v are loaded once, whatever the number of query heads and splits"""
        B, H, G, Nq, Nk, d = 1, 8, 2, 1, 128, 32
        for n_split in (4, 2):
            sizes = {"B": B, "H": H, "Nq": Nq, "d": d, "n_split": n_split, "s": 4}
            loaded = "B*G*2*Nk*d*s + n_split*B*H*Nq*d*s + n_split*B*H*Nq*(d + 2)*4"
            stored = "n_split*B*H*Nq*(d + 2)*4 + B*H*Nq*(d*s + 4)"
            self.assert_traffic(
                self.check(*self.inputs(B, H, G, Nq, Nk, d), n_split),
                loaded=Budget(loaded, **sizes, G=G, Nk=Nk),
                stored=Budget(stored, **sizes),
            )
