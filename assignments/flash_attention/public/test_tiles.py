"""Tasks 3 and 4: FlashAttention, forward and backward, in tiles of torch tensors."""

from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase


class TestFlashForward(AssignmentTestCase):
    """O, L and the counts in stats of `flash_forward`."""

    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        rescales: bool = False,
        **options: Any,
    ) -> None:
        """flash_forward(q, k, v, Br=…, …) against the definition, and its count of tiles.

        With `rescales` also that of rows rescaled.
        """
        call = self.student.call("flash_forward", q, k, v, **options, stats={})
        o, L = self.unpack(call, "O", "L")
        Br, Bc = options["Br"], options["Bc"]
        causal, start = options.get("causal", False), options.get("q_start", 0)
        expected_O, expected_L = oracle.attention(q, k, v, causal, start, options.get("scale"))
        self.assert_close("O", o, expected_O, dtype=q.dtype)
        self.assert_close("L", L, expected_L, dtype=q.dtype)
        Nq, Nk = q.shape[-2], k.shape[-2]
        computed = len(list(oracle.tiles(Nq, Nk, Br, Bc, causal, start)))
        every = len(list(oracle.tiles(Nq, Nk, Br, Bc)))
        expected = {"tiles": computed, "skipped": every - computed}
        if rescales:
            scale = options.get("scale")
            expected["rescales"] = oracle.rescales(q, k, Bc, causal, start, scale)
        counts = {name: call.filled["stats"].get(name, 0) for name in expected}
        if words := oracle.miscounts("stats", counts, expected):
            self.fail(words)
        self.assertEqual(counts, expected, "stats")

    @weight(2)
    @number("3.1")
    @visibility("visible")
    def test_one_tile(self):
        """One tile: 8 queries, 8 keys, Br = Bc = 8"""
        self.check(self.randn(8, 4), self.randn(8, 4), self.randn(8, 4), Br=8, Bc=8)

    @weight(2)
    @number("3.2")
    @visibility("visible")
    def test_many_tiles(self):
        """4 × 6 tiles; then tiles that do not fit: N = 37 and 53, Br = 16, Bc = 10"""
        self.check(self.randn(64, 16), self.randn(96, 16), self.randn(96, 16), Br=16, Bc=16)
        q, k, v = (self.randn(2, n, 16, dtype=torch.float64) for n in (37, 53, 53))
        self.check(q, k, v, Br=16, Bc=10, rescales=True)

    @weight(2)
    @number("3.3")
    @visibility("visible")
    def test_causal(self):
        """causal: tiles above the diagonal are skipped, the others masked; q_start 0 and 16"""
        q, k, v = (self.randn(40, 16) for _ in range(3))
        self.check(q, k, v, Br=8, Bc=8, causal=True)
        self.check(q, k, v, Br=16, Bc=12, causal=True)
        self.check(q, k, v, Br=9, Bc=8, causal=True)  # the last query of a block sees one key more
        self.check(q, k, v, Br=8, Bc=8, causal=True, q_start=-6)  # and here the first see none
        self.check(q[:24], k, v, Br=8, Bc=8, causal=True, q_start=16)


class TestFlashBackward(AssignmentTestCase):
    """dQ, dK, dV and the count in stats of `flash_backward`."""

    def check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> None:
        """flash_backward with the O and L of a right forward, against autograd."""
        causal, start = options.get("causal", False), options.get("q_start", 0)
        options_of_all = (causal, start, options.get("scale"))
        o, L = (t.to(q.dtype) for t in oracle.attention(q, k, v, *options_of_all))
        dO = self.randn(*q.shape, dtype=q.dtype)
        call = self.student.call("flash_backward", q, k, v, o, L, dO, **options, stats={})
        names = ("dQ", "dK", "dV")
        expected = oracle.gradients(q, k, v, dO, *options_of_all)
        for name, got, right in zip(names, self.unpack(call, *names), expected, strict=True):
            self.assert_close(name, got, right, dtype=q.dtype)
        rows = sum(
            rows
            for rows, _ in oracle.tiles(
                q.shape[-2], k.shape[-2], options["Br"], options["Bc"], causal, start
            )
        )
        counts = {"dq_atomic_adds": call.filled["stats"].get("dq_atomic_adds", 0)}
        expected_counts = {"dq_atomic_adds": rows * q.shape[-1]}
        if words := oracle.miscounts("stats", counts, expected_counts):
            self.fail(words)
        self.assertEqual(counts, expected_counts, "stats")

    @weight(2)
    @number("4.1")
    @visibility("visible")
    def test_one_tile(self):
        """One tile: 8 queries, 8 keys, Br = Bc = 8"""
        self.check(self.randn(8, 4), self.randn(8, 4), self.randn(8, 4), Br=8, Bc=8)

    @weight(2)
    @number("4.2")
    @visibility("visible")
    def test_many_tiles(self):
        """4 × 6 tiles; then N = 37 and 53 with Br = 16, Bc = 10, and a scale"""
        self.check(self.randn(64, 16), self.randn(96, 16), self.randn(96, 16), Br=16, Bc=16)
        q, k, v = (self.randn(n, 16, dtype=torch.float64) for n in (37, 53, 53))
        self.check(q, k, v, Br=16, Bc=10, scale=0.4)

    @weight(2)
    @number("4.3")
    @visibility("visible")
    def test_causal(self):
        """causal: tiles above the diagonal are skipped, the others masked; q_start 0 and 16"""
        q, k, v = (self.randn(40, 16) for _ in range(3))
        self.check(q, k, v, Br=16, Bc=12, causal=True)
        self.check(q, k, v, Br=9, Bc=8, causal=True)
        self.check(q[:24], k, v, Br=8, Bc=8, causal=True, q_start=16)
