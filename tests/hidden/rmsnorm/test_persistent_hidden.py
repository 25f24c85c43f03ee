"""Task 4 at the edges: one program, one a row, strides, 16-bit formats, long sums, bytes."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Budget, Call


class TestPersistentHidden(AssignmentTestCase):
    def check(
        self, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, P: int, eps: float = 1e-5
    ) -> Call:
        """P programs: right, and computed by a kernel."""
        r = oracle.inverse_rms(x, eps).float()
        call = self.student.call("rmsnorm_backward_persistent", x, g, r, dy, P)
        dx, dg_partial = self.judge(call, x, g, dy, P, eps)
        self.assert_by_kernels(call, dx=dx, dg_partial=dg_partial)
        x, g, dy = self.like(x), self.like(g), self.like(dy)
        r = oracle.inverse_rms(x, eps).float()
        self.assert_follows(call, lambda again: self.judge(again, x, g, dy, P, eps), x, g, r, dy)
        return call

    def judge(
        self, call: Call, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, P: int, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """dx, each row judged by its own size, and dg against autograd of the definition."""
        dx, dg_partial = self.unpack(call, "dx", "dg_partial")
        expected_dx, expected_dg = oracle.gradients(x, g, dy, eps)
        self.assert_close("dx", dx, expected_dx, dtype=x.dtype, per_row=True)
        shape = (P, x.shape[1])
        self.assertEqual(tuple(dg_partial.shape), shape, "dg_partial is to be (programs, N)")
        self.assertEqual(dg_partial.dtype, torch.float32, "dg_partial is to be float32")
        self.assert_close("dg", dg_partial.sum(0), expected_dg)
        return dx, dg_partial

    @weight(2)
    @number("4.5")
    @visibility("hidden")
    def test_shares(self):
        """One program for all rows, one for each, and widths 1, 129 and 16,384"""
        # With ε = 0.5 the two terms of dx do not cancel even at N = 1.
        for M, N, P in ((9, 30, 1), (9, 30, 9), (10, 1, 3), (7, 129, 4), (3, 16384, 2)):
            self.check(self.randn(M, N), self.randn(N), self.randn(M, N), P, eps=0.5)

    @weight(2)
    @number("4.6")
    @visibility("hidden")
    def test_strides_and_16_bit(self):
        """Slices and a repeated row; bfloat16 and float16; rows of zeros and of 1e-4"""
        x, g = self.randn(7, 60)[:, 5:45], self.randn(40)
        self.check(x, g, self.randn(7, 48)[:, :40], P=3)
        self.check(x, g, self.randn(40).expand(7, 40), P=9)
        for dtype in (torch.bfloat16, torch.float16):
            x, dy = (self.randn(11, 72, dtype=dtype) for _ in range(2))
            self.check(x, self.randn(72, dtype=dtype), dy, P=4)
        x = self.randn(6, 40)
        x[0] = 0
        x[1:3] *= 1e-4
        self.check(x, g, self.randn(6, 40), P=4, eps=1e-2)

    @weight(1)
    @number("4.7")
    @visibility("hidden")
    def test_long_sums(self):
        """bfloat16, dg of 600 rows of one sign in one program: its sum has to be float32"""
        x = self.randn(600, 8, dtype=torch.bfloat16)
        dy = (x + self.randn(600, 8, scale=0.5)).bfloat16()
        self.check(x, self.ones(8, dtype=torch.bfloat16), dy, P=1)

    @weight(2)
    @number("4.8")
    @visibility("hidden")
    def test_bytes(self):
        """The budget with one program, with more programs than rows, and where x and g differ"""
        for M, N, P, dtype, g_dtype in (
            (50, 129, 1, torch.float16, torch.float16),
            (5, 100, 12, torch.float32, torch.float32),
            (40, 64, 3, torch.bfloat16, torch.float32),
        ):
            x, dy = (self.randn(M, N, dtype=dtype) for _ in range(2))
            g = self.randn(N, dtype=g_dtype)
            s, t = x.element_size(), g.element_size()
            self.assert_traffic(
                self.check(x, g, dy, P),
                loaded=Budget("2*M*N*s + P*N*t + 4*M", M=M, N=N, P=P, s=s, t=t),
                stored=Budget("M*N*s + 4*P*N", M=M, N=N, P=P, s=s),
            )
