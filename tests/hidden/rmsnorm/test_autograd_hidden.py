"""Task 3 at the edges: any strides, ε by every way in, no rows at all, a whole step's bytes."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Budget, Call


class TestAutogradHidden(AssignmentTestCase):
    def check(self, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, eps: float = 1e-5) -> Call:
        """RMSNorm.apply(x, g, eps) and its gradients: right, and computed by kernels."""
        call = self.student.gradients("RMSNorm.apply", x, g, eps, dy=dy)
        self.check_call(call, x, g, dy, eps)
        return call

    def check_call(
        self, call: Call, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, eps: float
    ) -> None:
        """What a call returned is right, and was computed by its kernels from x, g and dy."""
        y, dx, dg = self.judge(call, x, g, dy, eps)
        self.assert_by_kernels(call, y=y, dx=dx, sums={"dg": dg})
        x, g, dy = self.like(x), self.like(g), self.like(dy)
        self.assert_follows(call, lambda again: self.judge(again, x, g, dy, eps), x, g, dy)

    def judge(
        self, call: Call, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """y, dx and dg against autograd of the definition."""
        y, dx, dg = self.unpack(call, "y", "dx", "dg")
        expected_dx, expected_dg = oracle.gradients(x, g, dy, eps)
        self.assert_close("y", y, oracle.rmsnorm(x, g, eps), dtype=x.dtype)
        self.assert_close("dx", dx, expected_dx, dtype=x.dtype)
        self.assert_close("dg", dg, expected_dg, dtype=g.dtype)
        return y, dx, dg

    @weight(2)
    @number("3.5")
    @visibility("hidden")
    def test_strides(self):
        """x, g and dy transposed, permuted, sliced, with steps, and expanded"""
        plain, g = self.randn(6, 20), self.randn(20)
        self.check(self.randn(20, 6).T, g, plain)
        self.check(plain, g, self.randn(20, 6).T)
        self.check(self.randn(6, 40)[:, ::2], g, self.randn(6, 50)[:, 5:25])
        self.check(self.randn(9, 40)[::2, 3:23][:4], g, self.randn(4, 20))
        self.check(plain, self.randn(40)[::2], self.randn(20).expand(6, 20))
        self.check(plain, self.randn(1).expand(20), self.randn(6, 1).expand(6, 20))
        self.check(self.randn(5, 3, 20).transpose(0, 1), g, self.randn(20, 5, 3).permute(2, 1, 0))

    @weight(2)
    @number("3.6")
    @visibility("hidden")
    def test_eps(self):
        """ε = 0.5 through RMSNorm.apply; rmsnorm with its default, by position and by name"""
        x, g, dy = self.randn(5, 24, scale=1e-2), self.randn(24), self.randn(5, 24)
        self.check(x, g, dy, eps=0.5)
        for args, kwargs, eps in (((), {}, 1e-5), ((1e-3,), {}, 1e-3), ((), {"eps": 0.1}, 0.1)):
            call = self.student.gradients("rmsnorm", x, g, *args, dy=dy, **kwargs)
            self.check_call(call, x, g, dy, eps)

    @weight(1)
    @number("3.7")
    @visibility("hidden")
    def test_edges(self):
        """No rows at all; a row of zeros; float16 rows of 300; bfloat16 with a float32 gain"""
        call = self.student.gradients(
            "RMSNorm.apply", self.ones(0, 7), self.ones(7), 1e-5, dy=self.ones(0, 7)
        )
        y, dx, dg = self.unpack(call, "y", "dx", "dg")
        self.assertEqual((tuple(y.shape), tuple(dx.shape)), ((0, 7), (0, 7)), "shapes of y and dx")
        self.assert_close("dg", dg, torch.zeros(7, dtype=torch.float64), floor=1e-30)

        x = self.randn(3, 12)
        x[1] = 0
        self.check(x, self.randn(12), self.randn(3, 12), eps=0.1)
        x = (300 + self.randn(4, 64)).half()
        self.check(x, self.randn(64, dtype=torch.float16), self.randn(4, 64, dtype=torch.float16))
        x, dy = (self.randn(4, 33, dtype=torch.bfloat16) for _ in range(2))
        self.check(x, self.randn(33), dy)

    @weight(2)
    @number("3.8")
    @visibility("hidden")
    def test_bytes(self):
        """Forward and backward together: tasks 1 and 2, and the sum over dg_partial by any means"""
        M, N = 40, 96
        x, g, dy = (self.randn(*shape, dtype=torch.bfloat16) for shape in ((M, N), (N,), (M, N)))
        self.assert_traffic(
            self.check(x, g, dy),
            loaded=Budget("2*M*N*s + (3*M*N*s + 4*M) + 4*M*N", M=M, N=N, s=2),
            stored=Budget("(M*N*s + 4*M) + (M*N*s + 4*M*N) + 4*N", M=M, N=N, s=2),
        )
