"""Task 4: memory that changes, dtypes, two norms and one matrix, random programs."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir.trace import exp, kv_write

from assignments.graph_fusion.case import GraphFusionCase


class TestFoldNormWeightHidden(GraphFusionCase):
    @weight(2)
    @number("4.5")
    @visibility("hidden")
    def test_leaves(self):
        """Not folded: two norms before one W, W an output, written memory, float32 w for bf16 W"""
        params = {"w": self.numbers(6), "v": self.numbers(6), "m": self.numbers(6, 6)}

        def written(p, cache, b):
            h = cache * p["w"]
            kv_write(cache, b.reshape(1, 6), 0)
            return h @ p["m"]

        def matrix_written(p, x, b):
            h = x * p["w"]
            kv_write(p["m"], b.reshape(1, 6), 0)
            return h @ p["m"]

        for fn in (
            lambda p, x: (x * p["w"]) @ p["m"] + (x * p["v"]) @ p["m"],
            lambda p, x: ((x * p["w"]) @ p["m"], p["m"]),
            lambda p, x: (lambda h: (h @ p["m"]) @ exp(h).permute(1, 0))(x * p["w"]),
            written,
            matrix_written,
        ):
            self.untouched("fold_norm_weight", self.program(fn, params), exact=False)

        def wider(p, x):
            return (x * x.constant(params["w"], "w", "f32")) @ p["m"]

        g = self.program(wider, {"m": params["m"]}, dtype="bf16")
        self.untouched("fold_norm_weight", g, exact=False)

    @weight(1)
    @number("4.6")
    @visibility("hidden")
    def test_weights_shared(self):
        """One w before two norms' matrices; a matrix that two products share; float32 alone"""
        params = {"w": self.numbers(6), "m": self.numbers(6, 6), "n": self.numbers(6, 2)}

        def two_norms(p, x):
            y = (x * p["w"]) @ p["m"]
            return y + 1, (y * p["w"]) @ p["n"]

        g = self.program(two_norms, params)
        self.assert_ops(
            self.rewritten("fold_norm_weight", g, count=2, exact=False), matmul=2, add=1
        )

        def shared(p, x):
            h = x * p["w"]
            return h @ p["m"] + exp(h @ p["m"])

        g = self.program(shared, params, dtype="f32")
        after = self.rewritten("fold_norm_weight", g, count=1, exact=False)
        self.assert_ops(after, matmul=2, add=1, exp=1)
        self.assertEqual({node.dtype for node in after}, {"f32"}, "dtypes")

    @weight(2)
    @number("4.7")
    @visibility("hidden")
    def test_random(self):
        """30 random programs, with memory that is written and draws"""
        for sample in self.samples(30, steps=24, least=10, special=False):
            self.keeps("fold_norm_weight", sample, exact=False)
