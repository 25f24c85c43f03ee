"""Task 3, first half: what depends on constants alone is computed now."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir.trace import bernoulli, exp, kv_write, softmax

from assignments.graph_fusion.case import GraphFusionCase


class TestConstantFold(GraphFusionCase):
    """`constant_fold`."""

    @weight(2)
    @number("3.1")
    @visibility("visible")
    def test_folds(self):
        """Operations on constants and literals become constants: chains, views, whole matrices"""
        params = {"w": self.numbers(6), "m": self.numbers(6, 6)}
        cases = (
            (lambda p, x: x * (1 + p["w"]), 1, {"mul": 1}),
            (lambda p, x: x @ (exp(p["m"]) * 2), 2, {"matmul": 1}),
            (lambda p, x: x + (p["m"].permute(1, 0) * p["w"]).sum().reshape(6), 2, {"add": 1}),
            (lambda p, x: (x @ softmax(p["m"] @ p["m"]), -p["w"]), 3, {"matmul": 1}),
            (lambda p, x: x + p["w"].reshape(1, 6).expand(4, 6), 0, {"add": 1}),
        )
        for fn, count, left in cases:
            g = self.program(fn, params)
            self.assert_ops(self.rewritten("constant_fold", g, count=count), left)

    @weight(1)
    @number("3.2")
    @visibility("visible")
    def test_dtypes_and_shapes(self):
        """A folded constant has the dtype of the result; shapes alone are enough to fold"""

        def wider(p, x):
            w = x.constant(self.numbers(6), "w", "f32")
            v = x.constant(self.numbers(6), "v", "bf16")
            return w * v, x * (v / w)

        self.rewritten("constant_fold", self.program(wider, dtype="bf16"), count=2)
        g = self.program(lambda p, x: x @ (p["m"] * p["w"]), {"m": (6, 8), "w": (8,)})
        after = self.rewritten("constant_fold", g, count=1)
        self.assert_ops(after, matmul=1)
        self.assertEqual(list(after.constants.values()), [None])

    @weight(2)
    @number("3.3")
    @visibility("visible")
    def test_leaves(self):
        """Not folded: draws, memory that is written, inputs, and what would be larger"""
        params = {"w": self.numbers(6), "m": self.numbers(4, 6)}

        def draws(p, x):
            return x * (p["w"] * bernoulli(x, 0.5))

        def written(p, x, b):
            scaled = p["m"] * 2
            kv_write(scaled, b.reshape(1, 6), 1)
            late = scaled * 3
            kv_write(p["m"], b.reshape(1, 6), 0)
            return scaled, late, p["m"] + x, p["m"] * 2

        def outer(p, x):
            return x.reshape(24, 1) * (p["w"].reshape(6, 1) + p["w"]).reshape(1, 36)

        for fn in (draws, written, outer, lambda p, x: (x + p["w"]) * 2):
            self.untouched("constant_fold", self.program(fn, params))

    @weight(1)
    @number("3.4")
    @visibility("visible")
    def test_special_numbers(self):
        """∞, NaN and −0 among constants are numbers like others"""
        w = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.0])
        for fn in (
            lambda p, x: x + p["w"] * 0.0,
            lambda p, x: x * (p["w"] - p["w"]),
            lambda p, x: x / (p["w"] + -0.0),
        ):
            self.rewritten("constant_fold", self.program(fn, {"w": w}), count=1)
