"""Task 4, the persistent backward: P programs, each with dg of many rows in registers."""

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.rmsnorm import oracle
from grader.testing import AssignmentTestCase, Budget, Call

EPS = 1e-5


class TestPersistent(AssignmentTestCase):
    """dx and dg of `rmsnorm_backward_persistent` for several shares of rows a program."""

    def check(self, M: int, N: int, P: int, dtype: torch.dtype = torch.float32) -> Call:
        """P programs on (M, N): right, and computed by a kernel."""
        x, dy = (self.randn(M, N, dtype=dtype) for _ in range(2))
        g = self.randn(N, dtype=dtype)
        call = self.student.call("rmsnorm_backward_persistent", x, g, self.r(x), dy, P)
        dx, dg_partial = self.judge(call, x, g, dy, P)
        self.assert_by_kernels(call, dx=dx, dg_partial=dg_partial)
        x, g, dy = self.like(x), self.like(g), self.like(dy)
        self.assert_follows(call, lambda again: self.judge(again, x, g, dy, P), x, g, self.r(x), dy)
        return call

    def r(self, x: torch.Tensor) -> torch.Tensor:
        """What a right forward returns for r: (M,) float32."""
        return oracle.inverse_rms(x, EPS).float()

    def judge(
        self, call: Call, x: torch.Tensor, g: torch.Tensor, dy: torch.Tensor, P: int
    ) -> tuple[torch.Tensor, ...]:
        """dx and dg against autograd of the definition, and a row of dg_partial a program."""
        dx, dg_partial = self.unpack(call, "dx", "dg_partial")
        expected_dx, expected_dg = oracle.gradients(x, g, dy, EPS)
        self.assert_close("dx", dx, expected_dx, dtype=x.dtype)
        shape = (P, x.shape[1])
        self.assertEqual(tuple(dg_partial.shape), shape, "dg_partial is to be (programs, N)")
        self.assertEqual(dg_partial.dtype, torch.float32, "dg_partial is to be float32")
        self.assert_close("dg", dg_partial.sum(0), expected_dg)
        return dx, dg_partial

    @weight(3)
    @number("4.1")
    @visibility("visible")
    def test_even_share(self):
        """8 rows for 4 programs: two each"""
        self.check(M=8, N=16, P=4)

    @weight(3)
    @number("4.2")
    @visibility("visible")
    def test_uneven_share(self):
        """37 rows for 5 programs, N = 100: some do one row more"""
        self.check(M=37, N=100, P=5)

    @weight(3)
    @number("4.3")
    @visibility("visible")
    def test_more_programs_than_rows(self):
        """3 rows for 8 programs: five have nothing to add to dg"""
        self.check(M=3, N=20, P=8)

    @weight(4)
    @number("4.4")
    @visibility("visible")
    def test_bytes(self):
        """g is loaded, and a row of dg_partial stored, once a program"""
        for M, N, P, dtype in ((64, 100, 4, torch.float32), (48, 128, 7, torch.bfloat16)):
            s = dtype.itemsize
            self.assert_traffic(
                self.check(M, N, P, dtype),
                loaded=Budget("2*M*N*s + P*N*s + 4*M", M=M, N=N, P=P, s=s),
                stored=Budget("M*N*s + 4*P*N", M=M, N=N, P=P, s=s),
            )
