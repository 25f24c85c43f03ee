"""Tasks 1 and 2 at the edges: empty states, any grouping, fully masked rows, large logits."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Record


class TestStatesHidden(AssignmentTestCase):
    def judge(self, got: object, s: torch.Tensor, v: torch.Tensor, floor: float = 0.0) -> None:
        """A state against what it holds by definition, of scores s and values v."""
        if not isinstance(got, Record) or got.kind != "SoftmaxState":
            self.fail(f"a SoftmaxState was expected, not {got!r:.80}")
        for name, right in zip("mlo", oracle.state(s, v), strict=True):
            self.assert_close(name, getattr(got, name), right, dtype=v.dtype, floor=floor)

    def merge(self, a: Record, b: Record) -> Record:
        """merge_states(a, b)."""
        return self.student.call("merge_states", a, b).value

    def state(self, s: torch.Tensor, v: torch.Tensor) -> Record:
        """The state of scores s and values v, rounded to the dtype of v."""
        m, ell, o = (t.to(v.dtype) for t in oracle.state(s, v))
        return Record("SoftmaxState", m=m, l=ell, o=o)

    @weight(1)
    @number("1.4")
    @visibility("hidden")
    def test_empty(self):
        """The empty state changes no other; two empty ones are empty; masked scores add nothing"""
        s, v = self.randn(4, 6), self.randn(6, 5)
        empty, full = self.state(s[:, :0], v[:0]), self.state(s, v)
        self.judge(self.merge(full, empty), s, v)
        self.judge(self.merge(empty, full), s, v)
        self.judge(self.merge(empty, empty), s[:, :0], v[:0], floor=1e-30)
        s[1] = s[2, 3:] = -math.inf  # one row sees nothing, one sees half
        self.judge(self.student.call("state_of_scores", s, v).value, s, v)
        # Rows that are empty on one side, on the other, and on both.
        s[0, :3] = s[3, 3:] = -math.inf
        self.judge(self.merge(self.state(s[:, :3], v[:3]), self.state(s[:, 3:], v[3:])), s, v)

    @weight(1)
    @number("1.5")
    @visibility("hidden")
    def test_any_grouping(self):
        """(a ⊕ b) ⊕ c and a ⊕ (b ⊕ c), maxima hundreds apart, float32 and float64"""
        for dtype in (torch.float32, torch.float64):
            v = self.randn(2, 12, 5, dtype=dtype)
            s = self.randn(2, 3, 12, dtype=dtype)
            s[..., :4] -= 700
            s[:, 0, 8:] += 800
            a, b, c = (self.state(s[..., n : n + 4], v[:, n : n + 4]) for n in (0, 4, 8))
            self.judge(self.merge(self.merge(a, b), c), s, v)
            self.judge(self.merge(a, self.merge(b, c)), s, v)
            self.judge(self.merge(self.merge(c, a), b), s, v)


class TestStandardHidden(AssignmentTestCase):
    def check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: object) -> None:
        """standard_attention(q, k, v, …) against the definition, each row by its own size."""
        call = self.student.call("standard_attention", q, k, v, **options)
        o, L = self.unpack(call, "O", "L")
        start = options.pop("q_start", 0)
        expected_O, expected_L = oracle.attention(q, k, v, start=start, **options)
        self.assert_close("O", o, expected_O, dtype=q.dtype, floor=1e-30)
        self.assert_close("L", L, expected_L, dtype=q.dtype)

    @weight(1)
    @number("2.3")
    @visibility("hidden")
    def test_edges(self):
        """Queries that see no key: O = 0 and L = −inf; no keys at all; logits × 30"""
        q, k, v = (self.randn(2, n, 8, dtype=torch.float64) for n in (6, 9, 9))
        self.check(q, k, v, causal=True, q_start=-3)
        self.check(q, k, v, causal=True, q_start=-6)
        self.check(q, k[:, :0], v[:, :0])
        self.check(30 * q, k, v, causal=True, q_start=2, scale=1.0)
