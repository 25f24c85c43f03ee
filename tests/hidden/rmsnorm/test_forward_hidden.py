"""Task 1 at the edges: ε, rows without length, 16-bit sums, widths and bytes in other shapes."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Budget, Call


class TestForwardHidden(AssignmentTestCase):
    def check(self, x: torch.Tensor, g: torch.Tensor, eps: float = 1e-5) -> Call:
        """rmsnorm_forward(x, g, eps): right, and computed by a kernel from x and g."""
        call = self.student.call("rmsnorm_forward", x, g, eps)
        y, r = self.judge(call, x, g, eps)
        self.assert_by_kernels(call, y=y, r=r)
        x, g = self.like(x), self.like(g)
        self.assert_follows(call, lambda again: self.judge(again, x, g, eps), x, g)
        return call

    def judge(
        self, call: Call, x: torch.Tensor, g: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """y and r against the definition; each row of y is judged by its own size."""
        y, r = self.unpack(call, "y", "r")
        self.assert_close("r", r, oracle.inverse_rms(x, eps), dtype=torch.float32)
        self.assert_close("y", y, oracle.rmsnorm(x, g, eps), dtype=x.dtype, per_row=True)
        return y, r

    @weight(3)
    @number("1.7")
    @visibility("hidden")
    def test_eps(self):
        """Rows of zeros, of 1e-4 and of 1000, with ε from 1e-6 to 0.5"""
        x = self.randn(6, 40)
        x[0] = 0
        x[1:3] *= 1e-4
        x[5] *= 1000
        for eps in (1e-6, 1e-2, 0.5):
            self.check(x, self.randn(40), eps)

    @weight(2)
    @number("1.8")
    @visibility("hidden")
    def test_16_bit_sums(self):
        """float16 rows of 300, whose squares overflow; bfloat16 rows of 4,096 numbers near 1"""
        x = (300 + self.randn(4, 64)).half()
        self.check(x, self.randn(64, dtype=torch.float16))
        x = (1 + self.randn(3, 4096, scale=0.1)).bfloat16()
        self.check(x, self.randn(4096, dtype=torch.bfloat16))

    @weight(2)
    @number("1.9")
    @visibility("hidden")
    def test_widths_and_strides(self):
        """N = 1, 127, 129 and 16,384; one row repeated by a stride of 0; g wider than x"""
        for M, N in ((300, 1), (3, 127), (1, 129), (2, 16384)):
            self.check(self.randn(M, N), self.randn(N))
        self.check(self.randn(1, 30).expand(5, 30), self.randn(30))
        self.check(self.randn(4, 33, dtype=torch.bfloat16), self.randn(33))

    @weight(2)
    @number("1.10")
    @visibility("hidden")
    def test_bytes(self):
        """The budget where N is 129 or 1,500, and where x and g differ in size"""
        for M, N, dtype, g_dtype in (
            (100, 129, torch.float16, torch.float16),
            (3, 1500, torch.float32, torch.float32),
            (40, 64, torch.bfloat16, torch.float32),
        ):
            x, g = self.randn(M, N, dtype=dtype), self.randn(N, dtype=g_dtype)
            s, t = x.element_size(), g.element_size()
            self.assert_traffic(
                self.check(x, g),
                loaded=Budget("M*N*s + M*N*t", M=M, N=N, s=s, t=t),
                stored=Budget("M*N*s + 4*M", M=M, N=N, s=s),
            )
