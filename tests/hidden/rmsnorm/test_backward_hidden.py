"""Task 2 at the edges: rows without length, 16-bit products and sums, widths, strides, bytes."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Budget, Call


class TestBackwardHidden(AssignmentTestCase):
    def check(self, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, eps: float = 1e-5) -> Call:
        """rmsnorm_backward with the r of a right forward: right, and computed by a kernel."""
        r = oracle.inverse_rms(x, eps).float()
        call = self.student.call("rmsnorm_backward", x, g, r, dy)
        dx, dg_partial = self.judge(call, x, g, dy, eps)
        self.assert_by_kernels(call, dx=dx, dg_partial=dg_partial)
        x, g, dy = self.like(x), self.like(g), self.like(dy)
        r = oracle.inverse_rms(x, eps).float()
        self.assert_follows(call, lambda again: self.judge(again, x, g, dy, eps), x, g, r, dy)
        return call

    def judge(
        self, call: Call, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """dx, each row judged by its own size, and dg against autograd of the definition."""
        dx, dg_partial = self.unpack(call, "dx", "dg_partial")
        expected_dx, expected_dg = oracle.gradients(x, g, dy, eps)
        self.assertEqual(dg_partial.dtype, torch.float32, "dg_partial is to be float32")
        self.assert_close("dx", dx, expected_dx, dtype=x.dtype, per_row=True)
        self.assert_close("dg", dg_partial.sum(0), expected_dg)
        return dx, dg_partial

    @weight(2)
    @number("2.8")
    @visibility("hidden")
    def test_scales(self):
        """Rows of zeros, of 1e-4 and of 1000, with ε from 1e-6 to 0.5"""
        x = self.randn(6, 40)
        x[0] = 0
        x[1:3] *= 1e-4
        x[5] *= 1000
        for eps in (1e-6, 1e-2, 0.5):
            self.check(x, self.randn(40), self.randn(6, 40), eps)

    @weight(2)
    @number("2.9")
    @visibility("hidden")
    def test_widths_and_strides(self):
        """N = 1, 2, 127, 129 and 16,384; dy, then x, one row repeated by a stride of 0"""
        for M, N in ((300, 1), (9, 2), (3, 127), (1, 129), (2, 16384)):
            # With ε = 0.5 the two terms of dx do not cancel even at N = 1.
            self.check(self.randn(M, N), self.randn(N), self.randn(M, N), eps=0.5)
        repeated = self.randn(1, 30).expand(5, 30)
        self.check(self.randn(5, 30), self.randn(30), repeated)
        self.check(repeated, self.randn(30), self.randn(5, 30))

    @weight(1)
    @number("2.10")
    @visibility("hidden")
    def test_16_bit_sums(self):
        """float16 where g · dy overflows; a bfloat16 mean over 4,096 numbers of one sign"""
        x, g, dy = ((300 + self.randn(*shape)).half() for shape in ((4, 64), (64,), (4, 64)))
        dy[:, ::2] *= -1  # else dy is along x, and dx all rounding
        self.check(x, g, dy)
        x = self.randn(3, 4096, dtype=torch.bfloat16)
        dy = (x + self.randn(3, 4096)).bfloat16()
        self.check(x, self.ones(4096, dtype=torch.bfloat16), dy)

    @weight(1)
    @number("2.11")
    @visibility("hidden")
    def test_bytes(self):
        """The budget where N is 129 or 1,500, and where x and g differ in size"""
        for M, N, dtype, g_dtype in (
            (100, 129, torch.float16, torch.float16),
            (3, 1500, torch.float32, torch.float32),
            (40, 64, torch.bfloat16, torch.float32),
        ):
            x, dy = (self.randn(M, N, dtype=dtype) for _ in range(2))
            g = self.randn(N, dtype=g_dtype)
            s, t = x.element_size(), g.element_size()
            self.assert_traffic(
                self.check(x, g, dy),
                loaded=Budget("2*M*N*s + M*N*t + 4*M", M=M, N=N, s=s, t=t),
                stored=Budget("M*N*s + 4*M*N", M=M, N=N, s=s),
            )
