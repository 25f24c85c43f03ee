"""Task 3, the autograd function: `RMSNorm.apply` and `rmsnorm` as a user calls them."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Call

EPS = 1e-5


class TestAutograd(AssignmentTestCase):
    """y, dx and dg of `RMSNorm.apply` for inputs of any rank and dtype."""

    def check(self, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor) -> None:
        """RMSNorm.apply(x, g, eps) and its gradients: right, and computed by kernels."""
        call = self.student.gradients("RMSNorm.apply", x, g, EPS, dy=dy)
        y, dx, dg = self.judge(call, x, g, dy)
        self.assert_by_kernels(call, y=y, dx=dx, sums={"dg": dg})
        x, g, dy = self.like(x), self.like(g), self.like(dy)
        self.assert_follows(call, lambda again: self.judge(again, x, g, dy), x, g, dy)

    def judge(
        self, call: Call, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """y, dx and dg against autograd of the definition."""
        y, dx, dg = self.unpack(call, "y", "dx", "dg")
        expected_dx, expected_dg = oracle.gradients(x, g, dy, EPS)
        self.assert_close("y", y, oracle.rmsnorm(x, g, EPS), dtype=x.dtype)
        self.assert_close("dx", dx, expected_dx, dtype=x.dtype)
        self.assert_close("dg", dg, expected_dg, dtype=g.dtype)
        return y, dx, dg

    @weight(3)
    @number("3.1")
    @visibility("visible")
    def test_matrix(self):
        """A matrix: y, dx and dg"""
        self.check(self.randn(5, 24), self.randn(24), self.randn(5, 24))

    @weight(3)
    @number("3.2")
    @visibility("visible")
    def test_any_rank(self):
        """x of rank 1, 3 and 4"""
        for shape in ((24,), (2, 3, 24), (2, 1, 3, 20)):
            self.check(self.randn(*shape), self.randn(shape[-1]), self.randn(*shape))

    @weight(4)
    @number("3.3")
    @visibility("visible")
    def test_sum_backward(self):
        """y.sum().backward(): dy is a single 1 with strides 0"""
        for shape in ((6, 20), (2, 3, 20)):
            self.check(self.randn(*shape), self.randn(20), self.ones(1).expand(shape))

    @weight(3)
    @number("3.4")
    @visibility("visible")
    def test_16_bit(self):
        """bfloat16 and float16: y, dx and dg in the dtypes of x, x and g"""
        for dtype in (torch.bfloat16, torch.float16):
            x, dy = (self.randn(4, 3, 40, dtype=dtype) for _ in range(2))
            self.check(x, self.randn(40, dtype=dtype), dy)
