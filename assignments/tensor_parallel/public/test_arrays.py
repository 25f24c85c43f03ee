"""Task 1: arrays in parts, and the three collectives along any of their axes."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestArrays(TensorParallelCase):
    """`shard`, `unshard`, `all_gather`, `reduce_scatter` and `all_reduce`."""

    @weight(2)
    @number("1.1")
    @visibility("visible")
    def test_shard(self):
        """shard cuts along any axis into n equal parts, unshard joins them"""
        x = self.array(4, 12, 6)
        for axis, n in ((0, 4), (1, 3), (2, 2), (-1, 6), (-2, 4)):
            length = x.shape[axis]
            expected = [np.take(x, oracle.share(length, n, r), axis) for r in range(n)]
            parts = self.student.call("shard", x, axis, n).value
            self.assert_parts(f"shard(x, {axis}, {n})", parts, expected)
            joined = self.student.call("unshard", expected, axis).value
            self.assert_close(f"unshard(…, {axis})", joined, x)

    @weight(1)
    @number("1.2")
    @visibility("visible")
    def test_shard_refuses(self):
        """shard refuses a length that n does not divide: a ValueError with axis, length and n"""
        for shape, axis, n in (((6, 7), 1, 3), ((5, 6, 14), 2, 4), ((2, 9), 0, 8)):
            what = f"shard of shape {shape} along axis {axis} into {n}"
            with self.refuses(what, axis, shape[axis], n):
                self.student.call("shard", self.array(*shape), axis, n)

    @weight(2)
    @number("1.3")
    @visibility("visible")
    def test_all_gather(self):
        """all_gather on 3 ranks, along each axis: the whole at every rank; (n−1)/n of it is sent"""
        n, shape = 3, (2, 5, 4)
        with self.student.ranks(n) as ranks:
            for axis in (0, 1, 2, -2):
                parts = self.arrays(n, *shape)
                call = ranks.call("all_gather", [(COMM, [part], axis) for part in parts])
                whole = np.concatenate(parts, axis)
                self.assert_each(call, f"the array gathered along axis {axis}", whole)
                self.assert_comm(
                    call,
                    counts={"all_gather_into_tensor": 1},
                    sent=Budget("(n-1)*m*s/n", n=n, m=whole.size, s=8),
                )

    @weight(2)
    @number("1.4")
    @visibility("visible")
    def test_reduce_scatter(self):
        """reduce_scatter on 4 ranks, along each axis: part r of the sum; (n−1)/n is sent"""
        n, shape = 4, (8, 12, 4)
        with self.student.ranks(n) as ranks:
            for axis in (0, 1, 2, -2):
                summands = self.arrays(n, *shape)
                call = ranks.call("reduce_scatter", [(COMM, [x], axis) for x in summands])
                total = np.sum(summands, 0)
                parts = [np.take(total, oracle.share(shape[axis], n, r), axis) for r in range(n)]
                self.assert_each(call, f"the sum scattered along axis {axis}", parts)
                self.assert_comm(
                    call,
                    counts={"reduce_scatter_tensor": 1},
                    sent=Budget("(n-1)*m*s/n", n=n, m=total.size, s=8),
                )

    @weight(2)
    @number("1.5")
    @visibility("visible")
    def test_all_reduce(self):
        """all_reduce on 4 ranks: the sum at every rank, by the algorithm that is asked for"""
        n, shape = 4, (3, 5, 4)
        m = 3 * 5 * 4
        with self.student.ranks(n) as ranks:
            for algo, sent in (
                ("ring", Budget("2*(n-1)*m*s/n", n=n, m=m, s=8)),
                ("rd", Budget("log2n*m*s", log2n=2, m=m, s=8)),
                ("innet", Budget("m*s", m=m, s=8)),
            ):
                summands = self.arrays(n, *shape)
                call = ranks.call("all_reduce", [(COMM, [x]) for x in summands], algo=algo)
                self.assert_each(call, f"the sum by {algo!r}", np.sum(summands, 0))
                self.assert_comm(call, counts={"all_reduce": 1}, sent=sent)
                self.assert_sends(call, sent.bytes, f"what {algo!r} sends")
