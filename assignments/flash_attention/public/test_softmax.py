"""Tasks 1 and 2: states of the online softmax, how two become one, and attention in one piece."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Record


class TestStates(AssignmentTestCase):
    """`state_of_scores` and `merge_states`."""

    def check_state(self, s: torch.Tensor, v: torch.Tensor | None = None) -> None:
        """state_of_scores(s, v): m, l and, with v, o."""
        call = self.student.call("state_of_scores", s, v)
        self.judge(call.value, s, v)

    def judge(self, got: object, s: torch.Tensor, v: torch.Tensor | None) -> None:
        """A state against what it holds by definition, of scores s and values v."""
        if not isinstance(got, Record) or got.kind != "SoftmaxState":
            self.fail(f"a SoftmaxState was expected, not {got!r:.80}")
        m, ell, o = oracle.state(s, v)
        self.assert_close("m", got.m, m, dtype=s.dtype)
        self.assert_close("l", got.l, ell, dtype=s.dtype)
        if v is None:
            self.assertIsNone(got.o, "without values there is no o: it is to be None")
        else:
            self.assert_close("o", got.o, o, dtype=s.dtype)

    def state(self, s: torch.Tensor, v: torch.Tensor | None = None) -> Record:
        """The state of scores s and values v, rounded to their dtype."""
        m, ell, o = oracle.state(s, v)
        return Record(
            "SoftmaxState",
            m=m.to(s.dtype),
            l=ell.to(s.dtype),
            o=None if o is None else o.to(s.dtype),
        )

    @weight(1)
    @number("1.1")
    @visibility("visible")
    def test_scores(self):
        """The state of 3 rows of 5 scores: m and l"""
        self.check_state(self.randn(3, 5))

    @weight(1)
    @number("1.2")
    @visibility("visible")
    def test_values(self):
        """The state of scores with their values: o as well; leading dimensions"""
        self.check_state(self.randn(4, 7), self.randn(7, 6))
        self.check_state(self.randn(2, 3, 4, 7), self.randn(2, 3, 7, 6))

    @weight(2)
    @number("1.3")
    @visibility("visible")
    def test_merge(self):
        """Two states merged are the state of all scores, with values and without"""
        s, v = self.randn(4, 9, scale=3.0), self.randn(9, 6)
        for cut in (3, 8):
            halves = [(s[:, :cut], v[:cut]), (s[:, cut:], v[cut:])]
            call = self.student.call("merge_states", *(self.state(*half) for half in halves))
            self.judge(call.value, s, v)
            call = self.student.call("merge_states", *(self.state(half[0]) for half in halves))
            self.judge(call.value, s, None)
        s[1] = s[2, :3] = -math.inf  # one row sees no key, one none of piece a
        call = self.student.call(
            "merge_states", self.state(s[:, :3], v[:3]), self.state(s[:, 3:], v[3:])
        )
        self.judge(call.value, s, v)


class TestStandard(AssignmentTestCase):
    """O and L of `standard_attention`."""

    def check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: object) -> None:
        """standard_attention(q, k, v, …) against the definition."""
        call = self.student.call("standard_attention", q, k, v, **options)
        o, L = self.unpack(call, "O", "L")
        start = options.pop("q_start", 0)
        expected_O, expected_L = oracle.attention(q, k, v, start=start, **options)
        self.assert_close("O", o, expected_O, dtype=q.dtype)
        self.assert_close("L", L, expected_L, dtype=q.dtype)

    @weight(1)
    @number("2.1")
    @visibility("visible")
    def test_one_head(self):
        """5 queries, 7 keys, d = 8: O and L"""
        self.check(self.randn(5, 8), self.randn(7, 8), self.randn(7, 8))

    @weight(2)
    @number("2.2")
    @visibility("visible")
    def test_options(self):
        """causal, with q_start 0 and 3; a scale; leading dimensions; float64"""
        q, k, v = self.randn(6, 8), self.randn(9, 8), self.randn(9, 8)
        self.check(q, k, v, causal=True)
        self.check(q, k, v, causal=True, q_start=3)
        self.check(q, k, v, causal=True, q_start=-2)  # the first two see no key
        self.check(q, k, v, scale=1 / math.pi)
        q, k, v = (self.randn(2, 3, n, 8, dtype=torch.float64) for n in (6, 9, 9))
        self.check(q, k, v, causal=True, q_start=1)
