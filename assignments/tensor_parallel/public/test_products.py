"""Task 2: the four cases of a sharded product."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestProducts(TensorParallelCase):
    """`matmul_case1` to `matmul_case4`: A (I, J) times B (J, K), each cut or not."""

    @weight(1)
    @number("2.1")
    @visibility("visible")
    def test_case1(self):
        """Case 1, A's rows are cut: C's rows, and nothing has to be known of other ranks"""
        B = self.array(6, 9)
        A_sh = self.arrays(3, 4, 6)
        call = self.student.call("matmul_case1", A_sh, B)
        self.assert_parts("the part of C", call.value, [a @ B for a in A_sh])
        call = self.student.call("matmul_case1", A_sh[2:], B)
        self.assert_parts("the part of C held by one rank", call.value, [A_sh[2] @ B])

    @weight(2)
    @number("2.2")
    @visibility("visible")
    def test_case2(self):
        """Case 2, A's columns are cut, 3 ranks: C at every rank; A is gathered, (n−1)/n·I·J"""
        n, I, J, K = 3, 4, 15, 7
        A_sh, B = self.arrays(n, I, J // n), self.array(J, K)
        with self.student.ranks(n) as ranks:
            call = ranks.call("matmul_case2", [(COMM, [a], B) for a in A_sh])
        self.assert_each(call, "C", np.concatenate(A_sh, 1) @ B)
        self.assert_comm(
            call,
            counts={"all_gather_into_tensor": 1},
            sent=Budget("(n-1)*I*J*s/n", n=n, I=I, J=J, s=8),
        )

    @weight(2)
    @number("2.3")
    @visibility("visible")
    def test_case3(self):
        """Case 3, the summed axis is cut, 4 ranks: C at every rank, by one all-reduce of I·K"""
        n, I, J, K = 4, 6, 20, 10
        A_sh, B_sh = self.arrays(n, I, J // n), self.arrays(n, J // n, K)
        C = np.concatenate(A_sh, 1) @ np.concatenate(B_sh, 0)
        args = [(COMM, [a], [b]) for a, b in zip(A_sh, B_sh, strict=True)]
        with self.student.ranks(n) as ranks:
            for given, sent in (
                ({}, Budget("2*(n-1)*I*K*s/n", n=n, I=I, K=K, s=8)),
                ({"algo": "rd"}, Budget("log2n*I*K*s", log2n=2, I=I, K=K, s=8)),
            ):
                call = ranks.call("matmul_case3", args, **given)
                self.assert_each(call, "C", C)
                self.assert_comm(call, counts={"all_reduce": 1}, sent=sent)
                self.assert_sends(call, sent.bytes, f"what {given.get('algo', 'ring')!r} sends")

    @weight(2)
    @number("2.4")
    @visibility("visible")
    def test_case3_scattered(self):
        """Case 3 with scatter_axis 0 or 1: part r of C, for half of the bytes"""
        n, I, J, K = 4, 8, 20, 12
        with self.student.ranks(n) as ranks:
            for axis, length in ((0, I), (1, K)):
                A_sh, B_sh = self.arrays(n, I, J // n), self.arrays(n, J // n, K)
                C = np.concatenate(A_sh, 1) @ np.concatenate(B_sh, 0)
                args = [(COMM, [a], [b]) for a, b in zip(A_sh, B_sh, strict=True)]
                call = ranks.call("matmul_case3", args, scatter_axis=axis)
                parts = [np.take(C, oracle.share(length, n, r), axis) for r in range(n)]
                self.assert_each(call, f"the part of C along axis {axis}", parts)
                self.assert_comm(
                    call,
                    counts={"reduce_scatter_tensor": 1},
                    sent=Budget("(n-1)*I*K*s/n", n=n, I=I, K=K, s=8),
                )

    @weight(2)
    @number("2.5")
    @visibility("visible")
    def test_case4(self):
        """Case 4, A's rows and B's columns are cut: C's rows; B is gathered, (n−1)/n·J·K"""
        n, I, J, K = 3, 12, 5, 21
        A_sh, B_sh = self.arrays(n, I // n, J), self.arrays(n, J, K // n)
        B = np.concatenate(B_sh, 1)
        args = [(COMM, [a], [b]) for a, b in zip(A_sh, B_sh, strict=True)]
        with self.student.ranks(n) as ranks:
            call = ranks.call("matmul_case4", args)
        self.assert_each(call, "the part of C", [a @ B for a in A_sh])
        self.assert_comm(
            call,
            counts={"all_gather_into_tensor": 1},
            sent=Budget("(n-1)*J*K*s/n", n=n, J=J, K=K, s=8),
        )
