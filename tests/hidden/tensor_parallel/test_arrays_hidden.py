"""Task 1 at the edges: 1 and 8 ranks, 1-D and 4-D arrays, other dtypes; refusals."""

import numpy as np
import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestArraysHidden(TensorParallelCase):
    @weight(2)
    @number("1.6")
    @visibility("hidden")
    def test_edges(self):
        """1 and 8 ranks, 1-D and 4-D arrays, float32: values, shapes and dtypes; the bytes"""
        single = torch.float32
        for n, shape, axis in ((1, (3, 2), 1), (8, (16,), 0), (8, (3, 2, 8, 5), 2)):
            m = int(np.prod(shape))
            xs = [x.astype(np.float32) for x in self.arrays(n, *shape)]
            total = np.sum(xs, 0, dtype=np.float64)
            parts = [np.take(total, oracle.share(shape[axis], n, r), axis) for r in range(n)]
            with self.student.ranks(n) as ranks:
                call = ranks.call("reduce_scatter", [(COMM, [x], axis) for x in xs])
                self.assert_each(call, f"the sum scattered along axis {axis}", parts, single)
                self.assert_comm(call, sent=Budget("(n-1)*m*s/n", n=n, m=m, s=4))
                call = ranks.call("all_reduce", [(COMM, [x]) for x in xs])
                self.assert_each(call, "the sum", total, single)
                self.assert_comm(call, sent=Budget("2*(n-1)*m*s/n", n=n, m=m, s=4))
                call = ranks.call("all_gather", [(COMM, [x], axis - len(shape)) for x in xs])
                whole = np.concatenate(xs, axis).astype(np.float64)
                self.assert_each(call, "the gathered array", whole, single)
                self.assert_comm(call, sent=Budget("(n-1)*m*s", n=n, m=m, s=4))

    @weight(1)
    @number("1.7")
    @visibility("hidden")
    def test_reduce_scatter_refuses(self):
        """reduce_scatter refuses a length that n does not divide: a ValueError with length and n"""
        for n, shape, axis in ((4, (8, 6), 1), (3, (7, 9), 0)):
            xs = self.arrays(n, *shape)
            what = f"reduce_scatter of shape {shape} along axis {axis} on {n} ranks"
            with self.student.ranks(n) as ranks, self.refuses(what, shape[axis], n):
                ranks.call("reduce_scatter", [(COMM, [x], axis) for x in xs])
