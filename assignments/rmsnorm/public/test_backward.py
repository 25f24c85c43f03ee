"""Task 2, the backward kernel: dx with its correction term, and dg in parts."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Budget, Call

EPS = 1e-5


class TestBackward(AssignmentTestCase):
    """dx and dg of `rmsnorm_backward`, given the r of a right forward."""

    def check(self, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, floor: float = 0.0) -> Call:
        """rmsnorm_backward with the r of a right forward: right, and computed by a kernel."""
        call = self.student.call("rmsnorm_backward", x, g, self.r(x), dy)
        dx, dg_partial = self.judge(call, x, g, dy, floor)
        self.assert_by_kernels(call, dx=dx, dg_partial=dg_partial)
        x, g, dy = self.like(x), self.like(g), self.like(dy)
        self.assert_follows(call, lambda again: self.judge(again, x, g, dy), x, g, self.r(x), dy)
        return call

    def r(self, x: torch.Tensor) -> torch.Tensor:
        """What a right forward returns for r: (M,) float32."""
        return oracle.inverse_rms(x, EPS).float()

    def judge(
        self,
        call: Call,
        x: torch.Tensor,
        g: torch.Tensor,
        dy: torch.Tensor,
        floor: float = 0.0,
    ) -> tuple[torch.Tensor, ...]:
        """dx, and dg_partial summed, against autograd of the definition."""
        dx, dg_partial = self.unpack(call, "dx", "dg_partial")
        self.assertEqual(dg_partial.dtype, torch.float32, "dg_partial is to be float32")
        expected_dx, expected_dg = oracle.gradients(x, g, dy, EPS)
        self.assert_close("dx", dx, expected_dx, dtype=x.dtype, floor=floor)
        self.assert_close("dg", dg_partial.sum(0), expected_dg)
        return dx, dg_partial

    @weight(3)
    @number("2.1")
    @visibility("visible")
    def test_one_row(self):
        """One row of 8 numbers, g all ones"""
        self.check(self.randn(1, 8), self.ones(8), self.randn(1, 8))

    @weight(4)
    @number("2.2")
    @visibility("visible")
    def test_many_rows(self):
        """64 rows of 128 numbers, and a gain"""
        self.check(self.randn(64, 128), self.randn(128), self.randn(64, 128))

    @weight(4)
    @number("2.3")
    @visibility("visible")
    def test_dy_along_x(self):
        """dy = 3x and g all ones: y hardly changes as a row is scaled, so dx is nearly zero"""
        x = self.randn(7, 16)
        self.check(x, self.ones(16), 3 * x, floor=1e-5)

    @weight(3)
    @number("2.4")
    @visibility("visible")
    def test_any_width(self):
        """N that is not a power of two: 100, 17, 3"""
        for N in (100, 17, 3):
            self.check(self.randn(5, N), self.randn(N), self.randn(5, N))

    @weight(3)
    @number("2.5")
    @visibility("visible")
    def test_row_strides(self):
        """x and dy are slices, each with a row stride of its own"""
        x = self.randn(6, 80)[:, 10:60]  # (6, 50), row stride 80
        dy = self.randn(6, 64)[:, :50]  # (6, 50), row stride 64
        self.check(x, self.randn(50), dy)

    @weight(3)
    @number("2.6")
    @visibility("visible")
    def test_16_bit(self):
        """bfloat16 and float16 in, dx the same, dg_partial in float32"""
        for dtype in (torch.bfloat16, torch.float16):
            x, dy = (self.randn(9, 72, dtype=dtype) for _ in range(2))
            self.check(x, self.randn(72, dtype=dtype), dy)

    @weight(4)
    @number("2.7")
    @visibility("visible")
    def test_bytes(self):
        """x, dy and r are loaded once, g once a row; dx and a row's share of dg are stored once"""
        for M, N, dtype in ((64, 100, torch.float32), (16, 256, torch.bfloat16)):
            x, dy = (self.randn(M, N, dtype=dtype) for _ in range(2))
            s = x.element_size()
            self.assert_traffic(
                self.check(x, self.randn(N, dtype=dtype), dy),
                loaded=Budget("3*M*N*s + 4*M", M=M, N=N, s=s),
                stored=Budget("M*N*s + 4*M*N", M=M, N=N, s=s),
            )
