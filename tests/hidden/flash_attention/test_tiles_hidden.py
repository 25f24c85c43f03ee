"""Tasks 3 and 4 at the edges: large logits, masked rows, odd shapes, and memory."""

import math
from typing import Any

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase

#: 8,192 queries and keys: the matrix of scores has 268 MB in float32. Sums of that many terms, in
#: which equal ones are rounded alike, may be off by 8192 · 2⁻²⁴ = 5e-4 at worst.
LONG, DISTINCT = 8192, 64
LONG_SUMS = 1e-4


class TestFlashForwardHidden(AssignmentTestCase):
    def check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> None:
        """flash_forward(q, k, v, …) against the definition, and every count in stats."""
        call = self.student.call("flash_forward", q, k, v, **options, stats={})
        o, L = self.unpack(call, "O", "L")
        Br, Bc = options["Br"], options["Bc"]
        causal, start = options.get("causal", False), options.get("q_start", 0)
        expected_O, expected_L = oracle.attention(q, k, v, causal, start, options.get("scale"))
        self.assert_close("O", o, expected_O, dtype=q.dtype, floor=1e-30)
        self.assert_close("L", L, expected_L, dtype=q.dtype)
        Nq, Nk = q.shape[-2], k.shape[-2]
        computed = len(list(oracle.tiles(Nq, Nk, Br, Bc, causal, start)))
        every = len(list(oracle.tiles(Nq, Nk, Br, Bc)))
        expected = {
            "tiles": computed,
            "skipped": every - computed,
            "rescales": oracle.rescales(q, k, Bc, causal, start, options.get("scale")),
        }
        counts = {name: call.filled["stats"].get(name, 0) for name in expected}
        if words := oracle.miscounts("stats", counts, expected):
            self.fail(words)
        self.assertEqual(counts, expected, "stats")

    @weight(1)
    @number("3.4")
    @visibility("hidden")
    def test_logits(self):
        """Logits × 30; maxima that grow or fall block by block; how often rows are rescaled"""
        q, k, v = (self.randn(n, 40, dtype=torch.float64) for n in (33, 97, 97))
        self.check(30 * q, k, v, Br=16, Bc=8)
        later = k + torch.arange(97)[:, None] / 8  # later keys are larger
        self.check(q.abs(), later, v, Br=32, Bc=24, scale=1.0, causal=True, q_start=64)
        first = k + 25 * (torch.arange(97) < 8)[:, None]  # the first are far larger: by exp(800)
        self.check(q.abs(), first, v, Br=32, Bc=24, scale=1.0)
        self.check(*(t.float() for t in (q, k, v)), Br=16, Bc=16, scale=-0.2)

    @weight(1)
    @number("3.5")
    @visibility("hidden")
    def test_edges(self):
        """Queries that see no key; no keys; one query; d = 111; three leading dimensions"""
        q, k, v = (self.randn(n, 24, dtype=torch.float64) for n in (29, 23, 23))
        self.check(q, k, v, Br=8, Bc=8, causal=True, q_start=-6)  # ends within a block
        self.check(q, k, v, Br=8, Bc=8, causal=True, q_start=-40)  # none sees any
        self.check(q, k[:0], v[:0], Br=8, Bc=8)
        self.check(q[:1], k, v, Br=16, Bc=5, causal=True, q_start=22)
        self.check(*(self.randn(2, 1, 3, n, 111) for n in (9, 13, 13)), Br=4, Bc=16)

    @weight(2)
    @number("3.6")
    @visibility("hidden")
    def test_memory(self):
        """8,192 queries and keys: the matrix of scores, 268 MB, would not fit into memory"""
        # All that is long is a few rows repeated: softmax takes n equal keys as one of n-fold
        # weight, so that the expected values follow from the rows that differ.
        q, k, v = (self.randn(DISTINCT, 8) for _ in range(3))
        copies = LONG // DISTINCT
        call = self.student.call(
            "flash_forward", *(t.repeat(copies, 1) for t in (q, k, v)), Br=512, Bc=512
        )
        o, L = self.unpack(call, "O", "L")
        expected_O, expected_L = oracle.attention(q, k, v)
        self.assert_close("O", o, expected_O.repeat(copies, 1), dtype=torch.float32, rtol=LONG_SUMS)
        expected_L = (expected_L + math.log(copies)).repeat(copies)
        self.assert_close("L", L, expected_L, dtype=torch.float32, rtol=LONG_SUMS)


class TestFlashBackwardHidden(AssignmentTestCase):
    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        dO: torch.Tensor,
        causal: bool = False,
        q_start: int = 0,
        scale: float | None = None,
        floor: float = 1e-30,
        **blocks: int,
    ) -> None:
        """flash_backward with the O and L of a right forward, against autograd."""
        o, L = (t.to(q.dtype) for t in oracle.attention(q, k, v, causal, q_start, scale))
        call = self.student.call(
            "flash_backward",
            *(q, k, v, o, L, dO),
            **blocks,
            causal=causal,
            scale=scale,
            q_start=q_start,
        )
        names = ("dQ", "dK", "dV")
        expected = oracle.gradients(q, k, v, dO, causal, q_start, scale)
        for name, got, right in zip(names, self.unpack(call, *names), expected, strict=True):
            self.assert_close(name, got, right, dtype=q.dtype, floor=floor)

    @weight(1)
    @number("4.4")
    @visibility("hidden")
    def test_shapes(self):
        """dO expanded from one number or one row; d = 59; leading dimensions; one query; ×30"""
        q, k, v = (self.randn(2, 3, n, 59) for n in (21, 18, 18))
        self.check(q, k, v, self.randn(1).expand(q.shape), Br=8, Bc=16)
        self.check(q, k, v, self.randn(59).expand(q.shape), Br=16, Bc=8, causal=True)
        q, k, v = (self.randn(n, 20, dtype=torch.float64) for n in (1, 97, 97))
        dO = self.randn(1, 20, dtype=torch.float64)
        self.check(q, k, v, dO, Br=16, Bc=32, causal=True, q_start=60)
        q, dO = (self.randn(17, 20, dtype=torch.float64) for _ in range(2))
        # Softmax is all but one-hot here, and dP − D all rounding: of numbers of 10, times 30 · q.
        self.check(30 * q, k, v, dO, Br=8, Bc=32, scale=0.3, floor=1e-12)

    @weight(1)
    @number("4.5")
    @visibility("hidden")
    def test_masked_rows(self):
        """Queries that see no key, and keys that no query sees, have gradient 0; no keys at all"""
        q, k, v = (self.randn(n, 24, dtype=torch.float64) for n in (29, 23, 23))
        dO = self.randn(29, 24, dtype=torch.float64)
        self.check(q, k, v, dO, Br=8, Bc=8, causal=True, q_start=-11)
        self.check(q, k, v, dO, Br=8, Bc=8, causal=True, q_start=-40)
        dQ, dK, dV = self.unpack(
            self.student.call(
                "flash_backward",
                *(q, k[:0], v[:0], torch.zeros_like(q), torch.full((29,), -math.inf).double(), dO),
            ),
            *("dQ", "dK", "dV"),
        )
        self.assert_close("dQ", dQ, torch.zeros_like(q), dtype=q.dtype, floor=1e-30)
        self.assertEqual([tuple(dK.shape), tuple(dV.shape)], [(0, 24), (0, 24)], "dK and dV")

    @weight(2)
    @number("4.6")
    @visibility("hidden")
    def test_memory(self):
        """8,192 queries and keys: P and dP, 268 MB each, would not fit into memory"""
        q, k, v, dO = (self.randn(DISTINCT, 8) for _ in range(4))
        copies = LONG // DISTINCT
        o, L = oracle.attention(q, k, v)
        L = L + math.log(copies)  # see the forward's test
        inputs = (*(t.repeat(copies, 1) for t in (q, k, v, o.float())), L.float().repeat(copies))
        call = self.student.call("flash_backward", *inputs, dO.repeat(copies, 1), Br=512, Bc=512)
        names = ("dQ", "dK", "dV")
        # dQ of each copy is that of the query; dK and dV of a key are shared out among its copies,
        # and come from every copy of every query.
        expected = oracle.gradients(q, k, v, dO)
        for name, got, right in zip(names, self.unpack(call, *names), expected, strict=True):
            right = right.repeat(copies, 1)
            self.assert_close(name, got, right, dtype=torch.float32, rtol=LONG_SUMS)
