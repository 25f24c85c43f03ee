"""Tasks 7 and 8: attention in numpy, with every element that it reads and writes counted."""

import numpy as np
import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Record


def judge_io(
    case: AssignmentTestCase,
    name: str,
    io: Record,
    units: dict[str, int] | None = None,
    **expected: int,
) -> None:
    """What a function counted, exactly: read, write and flops."""
    counted = {field: io.fields.get(field) for field in expected}
    if words := oracle.miscounts(name, counted, expected, units):
        case.fail(words)
    case.assertEqual(counted, expected, f"IO of {name}")


class TestLabForward(AssignmentTestCase):
    """`standard_attention`, `block_sizes`, `fa_io_formula` and `flash_fwd`."""

    def head(self, Nq: int, Nk: int, d: int) -> list[np.ndarray]:
        """Q (Nq, d), K and V (Nk, d), float64."""
        return [self.randn(rows, d, dtype=torch.float64).numpy() for rows in (Nq, Nk, Nk)]

    def check_flash(
        self, Nq: int, Nk: int, d: int, Br: int, Bc: int, order: str, causal: bool = False
    ) -> Record:
        """flash_fwd: O and L against the definition; the IO."""
        head = self.head(Nq, Nk, d)
        call = self.student.call("flash_lab:flash_fwd", *head, Br, Bc, causal, order)
        kinds = (np.ndarray, np.ndarray, Record)
        o, L, io = self.unpack(call, "O", "L", "IO", kinds=kinds)
        expected_O, expected_L = oracle.attention(*map(torch.from_numpy, head), causal)
        self.assert_close("O", o, expected_O, dtype=torch.float64)
        self.assert_close("L", L, expected_L, dtype=torch.float64)
        return io

    @weight(1)
    @number("7.1")
    @visibility("visible")
    def test_standard(self):
        """Standard attention: O, P, and 4·N² + 4·N·d elements; causal, too"""
        Nk, d = 24, 8
        for Nq, causal in ((24, False), (24, True), (14, True)):
            head = self.head(Nq, Nk, d)
            call = self.student.call("flash_lab:standard_attention", *head, causal)
            kinds = (np.ndarray, np.ndarray, Record)
            o, P, io = self.unpack(call, "O", "P", "IO", kinds=kinds)
            Q, K, V = map(torch.from_numpy, head)
            self.assert_close("O", o, oracle.attention(Q, K, V, causal)[0], dtype=torch.float64)
            # With the unit matrix for V, O is P.
            expected_P, _ = oracle.attention(Q, K, torch.eye(Nk), causal)
            self.assert_close("P", P, expected_P, dtype=torch.float64)
            judge_io(
                *(self, "standard_attention", io),
                read=Nq * d + 2 * Nk * d + 2 * Nq * Nk,
                write=2 * Nq * Nk + Nq * d,
                flops=4 * Nq * Nk * d,
                units={"N²": Nq * Nk, "N·d": Nq * d} if Nq == Nk else None,
            )

    @weight(1)
    @number("7.2")
    @visibility("visible")
    def test_formulas(self):
        """The paper's blocks for 100 KB of float16, and what both orders then move at N = 1,024"""
        N, d, M = 1024, 64, 51_200
        Br, Bc = self.unpack(
            self.student.call("flash_lab:block_sizes", M, d), "Br", "Bc", kinds=(int, int)
        )
        self.assertEqual((Br, Bc), (64, 200), "block_sizes(51200, 64)")
        Tr, Tc = 16, 6
        for order, expected in (
            ("fa1", 2 * N * d + Tc * (3 * N * d + 4 * N)),
            ("fa2", 2 * N * d + N + Tr * 2 * N * d),
        ):
            call = self.student.call("flash_lab:fa_io_formula", N, d, M, order)
            self.assertEqual(call.value, expected, f"fa_io_formula(…, {order!r})")

    @weight(2)
    @number("7.3")
    @visibility("visible")
    def test_fa2(self):
        """Order "fa2", 3 × 4 tiles: O and L; Q, O and L move once, K and V for each block of Q"""
        N, d, Br, Bc = 48, 8, 16, 12
        io = self.check_flash(N, N, d, Br, Bc, "fa2")
        Tr = N // Br
        judge_io(
            *(self, "flash_fwd", io),
            read=N * d + Tr * 2 * N * d,
            write=N * d + N,
            flops=4 * N * N * d,
            units={"N·d": N * d, "N": N},
        )

    @weight(1)
    @number("7.4")
    @visibility("visible")
    def test_fa1(self):
        """Order "fa1", 3 × 4 tiles: O and L; K and V move once, Q, O, ℓ, m for each block of K"""
        N, d, Br, Bc = 48, 8, 16, 12
        io = self.check_flash(N, N, d, Br, Bc, "fa1")
        Tc = N // Bc
        judge_io(
            *(self, "flash_fwd", io),
            read=2 * N * d + Tc * (2 * N * d + 2 * N),
            write=Tc * (N * d + 2 * N),
            flops=4 * N * N * d,
            units={"N·d": N * d, "N": N},
        )
        # causal, at the end of the keys: the last query of a block may see a single key of another.
        Nq, Nk, Br, Bc = 24, 29, 8, 6
        io = self.check_flash(Nq, Nk, d, Br, Bc, "fa1", causal=True)
        tiles = list(oracle.tiles(Nq, Nk, Br, Bc, causal=True))
        rows = sum(rows for rows, _ in tiles)
        judge_io(
            *(self, "flash_fwd, causal", io),
            read=2 * Nk * d + rows * (2 * d + 2),
            write=rows * (d + 2),
            flops=4 * d * sum(rows * columns for rows, columns in tiles),
        )


class TestLabBackward(AssignmentTestCase):
    """`standard_attention_bwd` and `flash_bwd`."""

    def head(self, Nq: int, Nk: int, d: int) -> list[torch.Tensor]:
        """Q (Nq, d), K and V (Nk, d), dO (Nq, d), float64."""
        return [self.randn(rows, d, dtype=torch.float64) for rows in (Nq, Nk, Nk, Nq)]

    def check_flash(self, head: list[torch.Tensor], Br: int, Bc: int, causal: bool = False) -> None:
        """flash_bwd with the O and L of a right forward: gradients, and the IO by the mask."""
        Q, K, V, dO = head
        o, L = oracle.attention(Q, K, V, causal)
        arrays = [t.numpy() for t in (Q, K, V, o, dO, L)]
        call = self.student.call("flash_lab:flash_bwd", *arrays, Br, Bc, causal)
        kinds = (np.ndarray, np.ndarray, np.ndarray, Record)
        *got, io = self.unpack(call, "dQ", "dK", "dV", "IO", kinds=kinds)
        expected = oracle.gradients(Q, K, V, dO, causal)
        for name, gradient, right in zip(("dQ", "dK", "dV"), got, expected, strict=True):
            self.assert_close(name, gradient, right, dtype=torch.float64)
        (Nq, d), Nk = Q.shape, len(K)
        tiles = list(oracle.tiles(Nq, Nk, Br, Bc, causal))
        rows = sum(rows for rows, _ in tiles)  # of queries, over the blocks of keys
        before = {"read": 2 * Nq * d, "write": Nq + Nq * d}  # D, and the zeros of dQ
        expected_io = {
            "read": before["read"] + 2 * Nk * d + rows * (3 * d + 2),
            "write": before["write"] + 2 * Nk * d + rows * d,
            "flops": 10 * d * sum(rows * columns for rows, columns in tiles),
        }
        units = {"N·d": Nq * d, "N": Nq} if Nq == Nk and not causal else None
        judge_io(self, "flash_bwd", io, units, **expected_io)

    @weight(1)
    @number("8.1")
    @visibility("visible")
    def test_standard(self):
        """Standard backward: dQ, dK, dV, and 7·N² + 9·N·d elements"""
        N, d = 20, 8
        Q, K, V, dO = self.head(N, N, d)
        P, _ = oracle.attention(Q, K, torch.eye(N))
        arrays = [t.numpy() for t in (Q, K, V, P, dO)]
        call = self.student.call("flash_lab:standard_attention_bwd", *arrays)
        kinds = (np.ndarray, np.ndarray, np.ndarray, Record)
        *got, io = self.unpack(call, "dQ", "dK", "dV", "IO", kinds=kinds)
        expected = oracle.gradients(Q, K, V, dO)
        for name, gradient, right in zip(("dQ", "dK", "dV"), got, expected, strict=True):
            self.assert_close(name, gradient, right, dtype=torch.float64)
        judge_io(
            *(self, "standard_attention_bwd", io),
            read=5 * N * N + 5 * N * d,
            write=2 * N * N + 4 * N * d,
            flops=8 * N * N * d,
            units={"N²": N * N, "N·d": N * d},
        )

    @weight(2)
    @number("8.2")
    @visibility("visible")
    def test_flash(self):
        """Flash backward, 3 × 4 tiles: dQ, dK, dV, and Tc·(4·N·d + 2·N) + 7·N·d + N elements"""
        self.check_flash(self.head(48, 48, 8), Br=16, Bc=12)

    @weight(1)
    @number("8.3")
    @visibility("visible")
    def test_causal(self):
        """causal: tiles above the diagonal are skipped, and cost nothing"""
        self.check_flash(self.head(40, 40, 8), Br=8, Bc=10, causal=True)
