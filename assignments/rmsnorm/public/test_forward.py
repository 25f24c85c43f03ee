"""Task 1, the forward kernel: from one short row to strides, 16-bit formats and bytes."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Budget, Call

EPS = 1e-5


class TestForward(AssignmentTestCase):
    """y and r of `rmsnorm_forward`, and the bytes that its kernel moves."""

    def check(self, x: torch.Tensor, g: torch.Tensor, eps: float = EPS) -> Call:
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
        """y and r against the definition: y in x's dtype, r in float32."""
        y, r = self.unpack(call, "y", "r")
        self.assert_close("r", r, oracle.inverse_rms(x, eps), dtype=torch.float32)
        self.assert_close("y", y, oracle.rmsnorm(x, g, eps), dtype=x.dtype)
        return y, r

    @weight(3)
    @number("1.1")
    @visibility("visible")
    def test_one_row(self):
        """One row of 8 numbers, g all ones"""
        self.check(self.randn(1, 8), self.ones(8))

    @weight(3)
    @number("1.2")
    @visibility("visible")
    def test_many_rows(self):
        """64 rows of 128 numbers, and a gain"""
        self.check(self.randn(64, 128), self.randn(128))

    @weight(4)
    @number("1.3")
    @visibility("visible")
    def test_any_width(self):
        """N that is not a power of two: 100, 17, 3"""
        for N in (100, 17, 3):
            self.check(self.randn(5, N), self.randn(N))

    @weight(3)
    @number("1.4")
    @visibility("visible")
    def test_row_stride(self):
        """x is a slice: its rows are further apart than N"""
        x = self.randn(6, 80)[:, 10:60]  # (6, 50), row stride 80
        self.check(x, self.randn(50))

    @weight(3)
    @number("1.5")
    @visibility("visible")
    def test_16_bit(self):
        """bfloat16 and float16 in, the same out; r in float32"""
        for dtype in (torch.bfloat16, torch.float16):
            self.check(self.randn(9, 72, dtype=dtype), self.randn(72, dtype=dtype))

    @weight(5)
    @number("1.6")
    @visibility("visible")
    def test_bytes(self):
        """x is loaded once, g once a row; y and r are stored once"""
        for M, N, dtype in ((64, 100, torch.float32), (16, 256, torch.bfloat16)):
            x, g = self.randn(M, N, dtype=dtype), self.randn(N, dtype=dtype)
            s = x.element_size()
            self.assert_traffic(
                self.check(x, g),
                loaded=Budget("2*M*N*s", M=M, N=N, s=s),
                stored=Budget("M*N*s + 4*M", M=M, N=N, s=s),
            )
