"""Tasks 5 and 6 at the edges: splits in any dtype and number, and every rounding up."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Record


class TestDecodeHidden(AssignmentTestCase):
    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        n_split: int,
        scale: float | None = None,
    ) -> None:
        """flash_decode against the definition; its parts are the state of all keys together."""
        call = self.student.call("flash_decode", q, k, v, n_split, scale=scale)
        o, parts = self.unpack(call, "O", "parts", kinds=(torch.Tensor, list))
        expected = oracle.attention(q, k, v, scale=scale)[0]
        self.assert_close("O", o, expected, dtype=q.dtype, floor=1e-30)
        self.assertEqual(len(parts), n_split, "the number of parts")
        for part in parts:
            if not isinstance(part, Record) or part.kind != "SoftmaxState":
                self.fail(f"every part is to be a SoftmaxState, not {part!r:.80}")
            for name, shape in (("m", q.shape[:-1]), ("l", q.shape[:-1]), ("o", q.shape)):
                value = getattr(part, name)
                if not isinstance(value, torch.Tensor) or value.shape != shape:
                    self.fail(f"{name} of a part is to be a tensor of shape {tuple(shape)}")
        together = oracle.joined([(part.m, part.l, part.o) for part in parts])
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        whole = oracle.state(q.double() @ k.double().transpose(-1, -2) * factor, v)
        for name, got, right in zip("mlo", together, whole, strict=True):
            self.assert_close(f"{name} of all parts together", got, right, rtol=1e-5, floor=1e-30)

    @weight(2)
    @number("5.4")
    @visibility("hidden")
    def test_edges(self):
        """Several queries, leading dimensions, a scale; maxima far apart; no keys at all"""
        self.check(*(self.randn(2, 3, n, 20) for n in (3, 41, 41)), n_split=6, scale=0.5)
        q, k, v = (self.randn(n, 20, dtype=torch.float64) for n in (2, 50, 50))
        k[30] *= 300  # one split holds a maximum far above the others', or far below
        for n_split in (1, 5, 50, 64):
            self.check(30 * q, k, v, n_split)
        self.check(q, k[:0], v[:0], n_split=3)


class TestFormulasHidden(AssignmentTestCase):
    @weight(1)
    @number("6.3")
    @visibility("hidden")
    def test_sizes(self):
        """N that Br does not divide; causal backward passes, with and without recomputation"""
        N, d = 1000, 40
        for expected, name, sizes, options in (
            (2 * N * d + N + 2 * N * d * 8, "io_flash", (N, d, 128), {}),
            (2 * N * d + N + 2 * N * d, "io_flash", (N, d, 1024), {}),
            (2 * N * d + N + 2 * N * d * 334, "io_flash", (N, d, 3), {}),
            (4 * N * d + N, "io_flash", (N, d, 3), {"kv_cached": True}),
            (4 * 7 * 9 + 4 * 49, "io_standard", (7, 9), {}),
            (5 * N * N * d, "attention_flops", (N, d), {"causal": True, "backward": True}),
            (
                *(4 * N * N * d, "attention_flops", (N, d)),
                {"causal": True, "backward": True, "recompute": False},
            ),
        ):
            value = self.student.call(name, *sizes, **options).value
            self.assertEqual(value, expected, f"{name}{sizes} with {options}")
