"""Task 10, the backward kernels: dq, dk and dv, by computing P again."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Budget, Call


class TestAttentionBackward(AssignmentTestCase):
    """dq, dk and dv of `attention_backward`, given o and lse of a right forward."""

    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool = False,
        **blocks: int,
    ) -> Call:
        """attention_backward with o and lse of a right forward: right, and computed by kernels."""
        do = self.randn(*q.shape, dtype=q.dtype)
        inputs = (q, k, v, *self.forward(q, k, v, causal), do)
        name = "flash_triton:attention_backward"
        call = self.student.call(name, *inputs, causal=causal, **blocks)
        dq, dk, dv = self.judge(call, q, k, v, do, causal)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, dq=dq, dk=dk, dv=dv)
        q, k, v, do = (self.like(t) for t in (q, k, v, do))
        inputs = (q, k, v, *self.forward(q, k, v, causal), do)
        self.assert_follows(call, lambda again: self.judge(again, q, k, v, do, causal), *inputs)
        return call

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What a right forward returns: o in the dtype of q, lse in float32."""
        o, lse = oracle.attention(q, k, v, causal)
        return o.to(q.dtype), lse.float()

    def judge(
        self,
        call: Call,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        causal: bool,
    ) -> tuple[Any, ...]:
        """dq, dk and dv, in the dtype of q, against autograd of the definition."""
        got = self.unpack(call, "dq", "dk", "dv")
        expected = oracle.gradients(q, k, v, do, causal)
        rtol = oracle.roundings(q.dtype, 8)
        for name, gradient, right in zip(("dq", "dk", "dv"), got, expected, strict=True):
            self.assert_close(name, gradient, right, dtype=q.dtype, rtol=rtol)
        return got

    @weight(2)
    @number("10.1")
    @visibility("visible")
    def test_one_tile(self):
        """One head, 16 queries, 16 keys, d = 16: one tile"""
        q, k, v = (self.randn(1, 1, 16, 16) for _ in range(3))
        self.check(q, k, v, Br=16, Bc=16)

    @weight(2)
    @number("10.2")
    @visibility("visible")
    def test_any_size(self):
        """37 queries, 53 keys, d = 40: no block divides them; 150 in your own; 4,112 of either"""
        q, k, v = (self.randn(2, 2, n, 40) for n in (37, 53, 53))
        self.check(q, k, v, Br=16, Bc=32)
        q, k, v = (self.randn(1, 2, 150, 40) for _ in range(3))
        self.check(q, k, v)
        for Nq, Nk in ((16, oracle.LONG), (oracle.LONG, 16)):
            q, k, v = (self.randn(1, 1, n, 16) for n in (Nq, Nk, Nk))
            self.check(q, k, v, Br=64, Bc=64)

    @weight(2)
    @number("10.3")
    @visibility("visible")
    def test_causal(self):
        """causal: 40 queries and 40 keys; 20 queries at the end of 53 keys"""
        for Nq, Nk in ((40, 40), (20, 53)):
            q, k, v = (self.randn(1, 2, n, 16) for n in (Nq, Nk, Nk))
            self.check(q, k, v, causal=True, Br=16, Bc=16)

    @weight(2)
    @number("10.4")
    @visibility("visible")
    def test_groups(self):
        """6 query heads on 2 key heads: dk and dv are sums over the 3 that share one"""
        q, k, v = (self.randn(1, heads, n, 16) for heads, n in ((6, 20), (2, 37), (2, 37)))
        self.check(q, k, v, Br=16, Bc=16)

    @weight(1)
    @number("10.5")
    @visibility("visible")
    def test_16_bit(self):
        """bfloat16 and float16: dq, dk and dv in the same"""
        for dtype in (torch.bfloat16, torch.float16):
            q, k, v = (self.randn(1, 2, n, 32, dtype=dtype) for n in (24, 40, 40))
            self.check(q, k, v, Br=16, Bc=16)
            self.check(*self.large_delta(32, 32, 32, dtype), Br=16, Bc=16)

    def large_delta(
        self, Nq: int, Nk: int, d: int, dtype: torch.dtype
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q, k and v for which dP − delta is small, dP and delta are large, and o is exact.

        So the gradients show whether o·do is rounded before it is summed up. Values come in pairs
        c + x and c − x, all of them short binary fractions. Queries are 0 where keys are not, and
        keys where queries are not: P is the same for every key, and o is c. An error of delta is
        one of dq times the mean of the keys, which therefore is not 0.
        """
        half, heads = d // 2, 2
        q, k = (self.randn(1, heads, n, d) for n in (Nq, Nk))
        q[..., half:] = 0
        k += 2
        k[..., :half] = 0
        c = 4 + self.randn(1, heads, 1, d).abs().clamp(max=3)
        x = self.randn(1, heads, Nk // 2, d).clamp(-0.9, 0.9) / 2
        c, x = ((t * 32).round() / 32 for t in (c, x))
        v = torch.cat((c + x, c - x), dim=2)
        return q.to(dtype), k.to(dtype), v.to(dtype)

    @weight(2)
    @number("10.6")
    @visibility("visible")
    def test_bytes(self):
        """All that is loaded and stored, together: nothing of the size of S"""
        B, H, d = 1, 2, 16
        Br, Bc = 64, 64
        for Nq, Nk in ((140, 100), (70, 150)):
            q, k, v = (self.randn(B, H, n, d) for n in (Nq, Nk, Nk))
            delta = "B*H*Nq*(2*d*s + 4)"
            keys = "B*H*4*Nk*d*s + B*H*cdiv(Nk, Bc)*Nq*(2*d*s + 8)"
            queries = "B*H*(Nq*(2*d*s + 8) + 2*cdiv(Nq, Br)*Nk*d*s) + B*H*Nq*d*s"
            sizes = {"B": B, "H": H, "Nq": Nq, "Nk": Nk, "d": d, "Br": Br, "Bc": Bc, "s": 4}
            self.assert_traffic(
                self.check(q, k, v, Br=Br, Bc=Bc),
                moved=Budget(f"{delta} + {keys} + {queries}", **sizes),
            )
