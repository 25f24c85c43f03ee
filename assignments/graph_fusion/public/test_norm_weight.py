"""Task 4: a norm's weight moves into the matrices behind it."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir import LLAMA8B, LayerCfg

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase


class TestFoldNormWeight(GraphFusionCase):
    """`fold_norm_weight`."""

    def params(self):
        """A weight w (6,), matrices m and n (6, 3)."""
        return {"w": self.numbers(6), "m": self.numbers(6, 3), "n": self.numbers(6, 3)}

    def folds(self, fn, count, params=None, **shapes):
        """Checks that so many multiplications vanish, and nothing else does."""
        g = self.program(fn, params or self.params(), **shapes)
        after = self.rewritten("fold_norm_weight", g, count=count, exact=False)
        left = oracle.ops(g)
        left.subtract(mul=count)
        self.assert_ops(after, +left)
        return after

    @weight(3)
    @number("4.1")
    @visibility("visible")
    def test_folds(self):
        """(x ⊙ w) W becomes x (diag(w) W): for one matrix and for three, w on either side"""
        self.folds(lambda p, x: (x * p["w"]) @ p["m"], 1)
        self.folds(lambda p, x: (p["w"] * x) @ p["m"], 1)
        self.folds(lambda p, z: (z * p["w"]) @ p["m"], 1, z=(2, 3, 6))

        def three(p, x):
            h = oracle.norm(x, p["w"], 1e-5, oracle.DECOMPOSED)
            return h @ p["m"], h @ p["n"], (h @ p["m"]) * 2

        after = self.folds(three, 1)
        if len(after.constants) != 2:
            self.fail(f"two matrices should be left of w, m and n in\n{after}")

    @weight(2)
    @number("4.2")
    @visibility("visible")
    def test_layer(self):
        """One layer: both norms' weights vanish, at Llama-3.1-8B's shapes, too, without values"""
        cfg = LayerCfg(24, 6, 2, 4, 40)
        g = oracle.prefill(cfg, 5, oracle.DECOMPOSED, arrays=True)
        after = self.rewritten("fold_norm_weight", g, count=2, exact=False)
        self.assert_ops(after, oracle.ops(oracle.prefill(cfg, 5, oracle.OPTIMIZED)))
        for before, due in (
            (oracle.prefill(LLAMA8B, 2048, oracle.DECOMPOSED), oracle.OPTIMIZED),
            (oracle.decode(LLAMA8B, oracle.DECOMPOSED), oracle.OPTIMIZED),
        ):
            after = self.rewritten("fold_norm_weight", before, count=2)
            layer = oracle.decode(LLAMA8B, due)
            if "S" not in before.names():
                layer = oracle.prefill(LLAMA8B, 2048, due)
            self.assert_ops(after, oracle.ops(layer))
            costs = [oracle.unfused(each.bind({"S": 4096})) for each in (after, layer)]
            self.assertEqual(*costs, "cost")

    @weight(3)
    @number("4.3")
    @visibility("visible")
    def test_leaves(self):
        """Not folded: x ⊙ w that somebody else needs, a tied W, a norm behind the product"""
        for fn in (
            lambda p, x: (lambda h: (h @ p["m"], h))(x * p["w"]),
            lambda p, x: (lambda h: h @ p["m"] + h.sum())(x * p["w"]),
            lambda p, x: (lambda h: (h @ p["m"]) @ p["m"].permute(1, 0) + h)(x * p["w"]),
            lambda p, x: x + x * p["w"],
            lambda p, x: ((x * p["w"]) @ p["m"], x @ p["m"]),
            lambda p, x: ((x * p["w"]) @ p["m"], p["m"] * 2),
            lambda p, x: (x * p["w"]) @ (p["m"] + p["n"]),
            lambda p, x: x @ (x * p["w"]).permute(1, 0),
            lambda p, x, s: (x * s) @ p["m"],
            lambda p, x, b: (x * b) @ p["m"],
            lambda p, y: (y @ p["m"].permute(1, 0)) * p["w"],
        ):
            g = self.program(fn, self.params(), y=(4, 3))
            self.untouched("fold_norm_weight", g, exact=False)

    @weight(1)
    @number("4.4")
    @visibility("visible")
    def test_one_plus_weight(self):
        """1 + w, as Gemma has it, once it is folded: it moves as it is; a second time nothing is"""
        params = self.params()
        g = self.program(lambda p, x: (x * (1 + p["w"])) @ p["m"], params)
        self.untouched("fold_norm_weight", g, exact=False)
        params["w"] = 1 + params["w"]
        after = self.folds(lambda p, x: (x * p["w"]) @ p["m"], 1, params)
        self.untouched("fold_norm_weight", after, exact=False)
        self.folds(
            lambda p, x: (x * p["folded_add"]) @ p["m"],
            1,
            {"folded_add": np.full(6, 1.5), "m": params["m"]},
        )
