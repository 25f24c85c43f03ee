"""Task 3 on random programs."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.graph_fusion.case import GraphFusionCase


class TestFoldingHidden(GraphFusionCase):
    @weight(2)
    @number("3.9")
    @visibility("hidden")
    def test_constant_fold(self):
        """constant_fold on 30 random programs, with memory that is written, draws, ∞, NaN and −0"""
        for sample in self.samples(30, steps=24, least=10, dtypes=("f64", "f32", "bf16")):
            self.keeps("constant_fold", sample)

    @weight(3)
    @number("3.10")
    @visibility("hidden")
    def test_simplify(self):
        """simplify on 35 random programs, in float64 and with every result rounded to its dtype"""
        for sample in self.samples(25, steps=24, least=10, dtypes=("f32", "bf16", "f16")):
            self.keeps("simplify", sample, rounding=True)
        for sample in self.samples(10, steps=24, least=10):
            self.keeps("simplify", sample)
