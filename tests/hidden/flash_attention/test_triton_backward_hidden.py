"""Task 10 at the edges: scale, large logits, masked rows, strides, 16-bit sums, bytes."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Budget, Call

#: Where a query sees a single key, or softmax is all but one-hot, gradients vanish; what is left of
#: dP − delta are roundings of numbers of about 10, times keys or queries.
ROUNDING = 5e-6
#: See the forward's test.
LARGE_LOGITS = {"rtol": 2e-4, "floor": 30 * ROUNDING}


class TestAttentionBackwardHidden(AssignmentTestCase):
    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        causal: bool = False,
        scale: float | None = None,
        rtol: float | None = None,
        floor: float = ROUNDING,
        **blocks: int,
    ) -> Call:
        """attention_backward with o and lse of a right forward: right, and computed by kernels."""
        inputs = (q, k, v, *self.forward(q, k, v, causal, scale), do)
        name = "flash_triton:attention_backward"
        call = self.student.call(name, *inputs, causal=causal, scale=scale, **blocks)
        dq, dk, dv = self.judge(call, inputs, causal, scale, rtol, floor)
        self.assert_tiles_fit(call)
        self.assert_by_kernels(call, dq=dq, dk=dk, dv=dv)
        q, k, v, do = (self.like(t) for t in (q, k, v, do))
        others = (q, k, v, *self.forward(q, k, v, causal, scale), do)
        self.assert_follows(
            call, lambda again: self.judge(again, others, causal, scale, rtol, floor), *others
        )
        return call

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool,
        scale: float | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What a right forward returns: o in the dtype of q, lse in float32."""
        o, lse = oracle.attention(q, k, v, causal, scale=scale)
        return o.to(q.dtype), lse.float()

    def judge(
        self,
        call: Call,
        inputs: tuple[torch.Tensor, ...],
        causal: bool,
        scale: float | None,
        rtol: float | None,
        floor: float,
    ) -> tuple[Any, ...]:
        """dq, dk and dv, in the dtype of q, against autograd of the definition."""
        q, k, v, _, _, do = inputs
        got = self.unpack(call, "dq", "dk", "dv")
        expected = oracle.gradients(q, k, v, do, causal, scale=scale)
        rtol = rtol or oracle.roundings(q.dtype, 8)
        for name, gradient, right in zip(("dq", "dk", "dv"), got, expected, strict=True):
            self.assert_close(name, gradient, right, dtype=q.dtype, rtol=rtol, floor=floor)
        return got

    @weight(1)
    @number("10.7")
    @visibility("hidden")
    def test_scale(self):
        """A scale of 0.3; logits × 30; float16 sums over queries that pass 65,504"""
        q, k, v, do = (self.randn(1, 1, n, 40) for n in (20, 23, 23, 20))
        self.check(q, k, v, do, scale=0.3, Br=16, Bc=16)
        self.check(30 * q, k, v, do, **LARGE_LOGITS, Br=16, Bc=16)
        # dv of a key is the sum over queries of do/16 or so: 96,000 after 384 of the 576 queries.
        q, k, v = (self.randn(1, 1, n, 16, scale=0.1).half() for n in (576, 16, 16))
        do = 4000 + 400 * self.randn(1, 1, 576, 16)
        do[:, :, 384:] *= -1
        self.check(q, k, v, do.half(), Br=64, Bc=16)

    @weight(2)
    @number("10.8")
    @visibility("hidden")
    def test_edges(self):
        """Queries that see no key; one query; d = 59; strides of every kind, also of do"""
        q, do = (self.randn(2, 1, 1, 59) for _ in range(2))
        k, v = (self.randn(2, 1, 40, 59) for _ in range(2))
        self.check(q, k, v, do, causal=True, Br=16, Bc=32)
        q = self.randn(2, 53, 4, 24).transpose(1, 2)  # as projections leave it
        k = self.randn(2, 2, 70, 48)[:, :, ::2, 5:29]  # a slice of a larger cache
        v = self.randn(1, 2, 35, 24).expand(2, 2, 35, 24)  # a prefix that the batch shares
        do = self.randn(24).expand(2, 4, 53, 24)  # as o.mean(dim=2) sends it
        self.check(q, k, v, do, causal=True, Br=32, Bc=16)

    @weight(2)
    @number("10.9")
    @visibility("hidden")
    def test_bytes(self):
        """The budget under a causal mask, in groups, where no block fits, and with masked rows"""
        for B, H, G, Nq, Nk, d, Br, Bc, causal, dtype in (
            (1, 4, 2, 40, 75, 20, 16, 32, True, torch.bfloat16),
            (2, 1, 1, 61, 30, 33, 16, 16, True, torch.float32),
        ):
            q, do = (self.randn(B, H, Nq, d, dtype=dtype) for _ in range(2))
            k, v = (self.randn(B, G, Nk, d, dtype=dtype) for _ in range(2))
            delta = "B*H*Nq*(2*d*s + 4)"
            keys = "B*G*4*Nk*d*s + B*H*Q_rows*(2*d*s + 8)"
            queries = "B*H*(Nq*(2*d*s + 8) + 2*K_rows*d*s) + B*H*Nq*d*s"
            sizes = {"B": B, "H": H, "G": G, "Nq": Nq, "Nk": Nk, "d": d, "s": dtype.itemsize}
            self.assert_traffic(
                self.check(q, k, v, do, causal=causal, Br=Br, Bc=Bc),
                moved=Budget(
                    f"{delta} + {keys} + {queries}",
                    **sizes,
                    Q_rows=oracle.query_rows(Nq, Nk, Br, Bc, causal),
                    K_rows=oracle.key_rows(Nq, Nk, Br, Bc, causal),
                ),
            )
