"""Task 2 at the edges: 1 and 8 ranks, parts of one row or column; a refusal."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestProductsHidden(TensorParallelCase):
    @weight(2)
    @number("2.6")
    @visibility("hidden")
    def test_ranks(self):
        """Cases 2, 3 and 4 on 1, 2 and 8 ranks, down to one row or column a rank"""
        for n, I, J, K in ((1, 3, 5, 4), (2, 4, 2, 6), (8, 8, 24, 16)):
            A, B = self.array(I, J), self.array(J, K)
            rows, columns, thirds = (
                [oracle.share(length, n, r) for r in range(n)] for length in (I, J, K)
            )
            with self.student.ranks(n) as ranks:
                args = [(COMM, [A[:, own]], B) for own in columns]
                call = ranks.call("matmul_case2", args)
                self.assert_each(call, "C of case 2", A @ B)
                self.assert_comm(call, sent=Budget("(n-1)*I*J*s/n", n=n, I=I, J=J, s=8))
                args = [(COMM, [A[:, own]], [B[own]]) for own in columns]
                call = ranks.call("matmul_case3", args)
                self.assert_each(call, "C of case 3", A @ B)
                self.assert_comm(call, sent=Budget("2*(n-1)*I*K*s/n", n=n, I=I, K=K, s=8))
                call = ranks.call("matmul_case3", args, scatter_axis=1)
                parts = [(A @ B)[:, own] for own in thirds]
                self.assert_each(call, "the part of C of case 3", parts)
                self.assert_comm(call, sent=Budget("(n-1)*I*K*s/n", n=n, I=I, K=K, s=8))
                args = [
                    (COMM, [A[own]], [B[:, third]]) for own, third in zip(rows, thirds, strict=True)
                ]
                call = ranks.call("matmul_case4", args)
                self.assert_each(call, "the part of C of case 4", [(A @ B)[own] for own in rows])
                self.assert_comm(call, sent=Budget("(n-1)*J*K*s/n", n=n, J=J, K=K, s=8))

    @weight(1)
    @number("2.7")
    @visibility("hidden")
    def test_scatter_refuses(self):
        """Case 3 refuses to scatter an axis that n does not divide: a ValueError with both"""
        n, I, J, K = 4, 4, 8, 6
        args = [(COMM, [self.array(I, J // n)], [self.array(J // n, K)]) for _ in range(n)]
        with (
            self.student.ranks(n) as ranks,
            self.refuses(f"matmul_case3 with K = {K}, scattered along axis 1 to {n} ranks", K, n),
        ):
            ranks.call("matmul_case3", args, scatter_axis=1)
