"""Task 1 on random programs."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase


class TestDecomposeHidden(GraphFusionCase):
    @weight(2)
    @number("1.5")
    @visibility("hidden")
    def test_random(self):
        """30 random programs, with memory that is written, random nodes, ∞, NaN and −0"""
        names = ("rms_norm", "softmax", "silu")
        more = {"rms_norm": 6, "softmax": 4, "silu": 3}
        for sample in self.samples(30, steps=20, least=8, dtypes=("f64", "f32", "bf16")):
            before = oracle.ops(sample.graph)
            after = oracle.ops(self.keeps("decompose", sample))
            if any(after[name] for name in names):
                self.fail(f"a composite is left: {after}")
            expected = before.total() + sum(more[name] * before[name] for name in names)
            self.assertEqual(after.total(), expected, "operations")
