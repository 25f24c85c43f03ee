"""Tasks 7 and 8 at the edges: sizes that do not fit, masks with Nq ≠ Nk, masked rows, counts."""

import numpy as np
import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Record


def judge_io(case: AssignmentTestCase, name: str, io: Record, **expected: int) -> None:
    """What a function counted, exactly: read, write and flops."""
    counted = {field: io.fields.get(field) for field in expected}
    if words := oracle.miscounts(name, counted, expected):
        case.fail(words)
    case.assertEqual(counted, expected, f"IO of {name}")


class TestLabForwardHidden(AssignmentTestCase):
    def check(
        self, Nq: int, Nk: int, d: int, Br: int, Bc: int, causal: bool = False, factor: float = 1
    ) -> None:
        """flash_fwd in both orders against the definition; the IO by the tiles that are visible."""
        Q, K, V = (self.randn(rows, d, dtype=torch.float64) for rows in (Nq, Nk, Nk))
        Q *= factor
        expected_O, expected_L = oracle.attention(Q, K, V, causal)
        tiles = list(oracle.tiles(Nq, Nk, Br, Bc, causal))
        K_rows = sum(columns for _, columns in tiles)
        Q_rows = sum(rows for rows, _ in tiles)
        flops = 4 * d * sum(rows * columns for rows, columns in tiles)
        for order, read, write in (
            ("fa1", 2 * Nk * d + Q_rows * (2 * d + 2), Q_rows * (d + 2)),
            ("fa2", Nq * d + K_rows * 2 * d, Nq * d + Nq),
        ):
            arrays = [t.numpy() for t in (Q, K, V)]
            call = self.student.call("flash_lab:flash_fwd", *arrays, Br, Bc, causal, order)
            kinds = (np.ndarray, np.ndarray, Record)
            o, L, io = self.unpack(call, "O", "L", "IO", kinds=kinds)
            self.assert_close("O", o, expected_O, dtype=torch.float64)
            self.assert_close("L", L, expected_L, dtype=torch.float64)
            name = f"flash_fwd in order {order!r}"
            judge_io(self, name, io, read=read, write=write, flops=flops)

    @weight(1)
    @number("7.5")
    @visibility("hidden")
    def test_sizes(self):
        """Blocks that do not divide N, one query, logits × 30; ⌈M/4d⌉ and ⌈N/Bc⌉ in the formula"""
        self.check(29, 43, 12, Br=8, Bc=10, factor=30)
        self.check(1, 33, 7, Br=4, Bc=16)
        for N, d, M, Br, Bc in ((100, 40, 1000, 7, 7), (1000, 8, 4097, 8, 129)):
            call = self.student.call("flash_lab:block_sizes", M, d)
            sizes = self.unpack(call, "Br", "Bc", kinds=(int, int))
            self.assertEqual(sizes, (Br, Bc), f"block_sizes({M}, {d})")
            Tr, Tc = -(-N // Br), -(-N // Bc)
            for order, expected in (
                ("fa1", 2 * N * d + Tc * (3 * N * d + 4 * N)),
                ("fa2", 2 * N * d + N + Tr * 2 * N * d),
            ):
                value = self.student.call("flash_lab:fa_io_formula", N, d, M, order).value
                self.assertEqual(value, expected, f"fa_io_formula({N}, {d}, {M}, {order!r})")

    @weight(2)
    @number("7.6")
    @visibility("hidden")
    def test_causal(self):
        """causal with Nq < Nk, Nq = Nk and Nq > Nk, where queries see no key; P of those is 0"""
        self.check(13, 30, 8, Br=4, Bc=7, causal=True)
        self.check(32, 32, 8, Br=8, Bc=8, causal=True)
        self.check(30, 13, 8, Br=5, Bc=4, causal=True)
        Nq, Nk, d = 9, 5, 6
        Q, K, V = (self.randn(rows, d, dtype=torch.float64) for rows in (Nq, Nk, Nk))
        arrays = [t.numpy() for t in (Q, K, V)]
        call = self.student.call("flash_lab:standard_attention", *arrays, True)
        o, P, io = self.unpack(call, "O", "P", "IO", kinds=(np.ndarray, np.ndarray, Record))
        self.assert_close("O", o, oracle.attention(Q, K, V, True)[0], dtype=torch.float64)
        expected_P, _ = oracle.attention(Q, K, torch.eye(Nk), True)
        self.assert_close("P", P, expected_P, dtype=torch.float64)
        judge_io(
            *(self, "standard_attention", io),
            read=2 * Nq * Nk + Nq * d + 2 * Nk * d,
            write=2 * Nq * Nk + Nq * d,
            flops=4 * Nq * Nk * d,
        )


class TestLabBackwardHidden(AssignmentTestCase):
    def check(
        self, Nq: int, Nk: int, d: int, Br: int, Bc: int, causal: bool = False, factor: float = 1
    ) -> None:
        """Both backward passes against autograd of the definition; the IO by visible tiles."""
        Q, K, V, dO = (self.randn(rows, d, dtype=torch.float64) for rows in (Nq, Nk, Nk, Nq))
        Q *= factor
        o, L = oracle.attention(Q, K, V, causal)
        P, _ = oracle.attention(Q, K, torch.eye(Nk), causal)
        tiles = list(oracle.tiles(Nq, Nk, Br, Bc, causal))
        rows = sum(rows for rows, _ in tiles)
        area = sum(rows * columns for rows, columns in tiles)
        for name, inputs, options, expected_io in (
            (
                *("flash_bwd", (Q, K, V, o, dO, L), (Br, Bc, causal)),
                {
                    "read": 2 * Nq * d + 2 * Nk * d + rows * (3 * d + 2),
                    "write": Nq + Nq * d + 2 * Nk * d + rows * d,
                    "flops": 10 * d * area,
                },
            ),
            (
                *("standard_attention_bwd", (Q, K, V, P, dO), ()),
                {
                    "read": 5 * Nq * Nk + 3 * Nq * d + 2 * Nk * d,
                    "write": 2 * Nq * Nk + 2 * Nq * d + 2 * Nk * d,
                    "flops": 8 * Nq * Nk * d,
                },
            ),
        ):
            arrays = [t.numpy() for t in inputs]
            call = self.student.call(f"flash_lab:{name}", *arrays, *options)
            kinds = (np.ndarray, np.ndarray, np.ndarray, Record)
            *got, io = self.unpack(call, "dQ", "dK", "dV", "IO", kinds=kinds)
            expected = oracle.gradients(Q, K, V, dO, causal)
            for what, gradient, right in zip(("dQ", "dK", "dV"), got, expected, strict=True):
                self.assert_close(what, gradient, right, dtype=torch.float64)
            judge_io(self, name, io, **expected_io)

    @weight(2)
    @number("8.4")
    @visibility("hidden")
    def test_edges(self):
        """Blocks that do not divide N, logits × 30; causal with Nq < Nk and Nq > Nk; one query"""
        self.check(29, 43, 12, Br=8, Bc=10)
        self.check(17, 20, 12, Br=8, Bc=10, factor=3)
        self.check(13, 30, 8, Br=4, Bc=7, causal=True)
        self.check(30, 13, 8, Br=5, Bc=4, causal=True)
        self.check(1, 33, 7, Br=4, Bc=16, causal=True)
