"""Task 1: composites become what they are made of."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir import LayerCfg
from graph_ir.trace import exp, rms_norm, silu, softmax

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase


class TestDecompose(GraphFusionCase):
    """`decompose`."""

    @weight(2)
    @number("1.1")
    @visibility("visible")
    def test_rms_norm(self):
        """rms_norm becomes 7 operations, with its own ε, in the dtype that it had"""
        for eps in (1e-5, 0.25):
            g = self.program(lambda p, x, eps=eps: rms_norm(x, p["w"], eps), {"w": self.numbers(6)})
            after = self.rewritten("decompose", g)
            self.assert_ops(after, mul=3, sum=1, div=1, add=1, rsqrt=1)
        g = self.program(lambda p, x, b: rms_norm(x, b, 0.5), b=((6,), "f32"), dtype="bf16")
        self.rewritten("decompose", g)

    @weight(3)
    @number("1.2")
    @visibility("visible")
    def test_softmax_and_silu(self):
        """softmax becomes 5 operations, silu 4; what is no composite stays"""
        after = self.rewritten("decompose", self.program(lambda p, x: softmax(x)))
        self.assert_ops(after, max=1, sub=1, exp=1, sum=1, div=1)
        after = self.rewritten("decompose", self.program(lambda p, x: silu(x)))
        self.assert_ops(after, neg=1, exp=1, add=1, div=1)
        g = self.program(lambda p, x, y: (silu(x) * y, exp(x) @ y.permute(1, 0), x.max()))
        after = self.rewritten("decompose", g)
        self.assert_ops(after, neg=1, exp=2, add=1, div=1, mul=1, matmul=1, max=1)

    @weight(2)
    @number("1.3")
    @visibility("visible")
    def test_large_numbers(self):
        """Large numbers: no overflow in a softmax of ±5000, a row masked by −∞, silu at ±800"""
        x = self.numbers(4, 6) * 2000
        x[0] = 5000.0
        x[1, 3:] = -np.inf
        x[2, 0] = 800.0
        for fn in (softmax, silu):
            g = self.program(lambda p, x, fn=fn: fn(x))
            self.rewritten("decompose", g, inputs=[{"x": x}, {"x": -x}])

    @weight(3)
    @number("1.4")
    @visibility("visible")
    def test_layer(self):
        """One layer: 26 operations become 45 at prefill, 27 become 46 at decode"""
        cfg = LayerCfg(24, 6, 2, 4, 40)
        g = oracle.prefill(cfg, 5, oracle.EAGER, arrays=True)
        after = self.rewritten("decompose", g, inputs=[self.inputs(g)])
        self.assertEqual(oracle.ops(after).total(), 45)
        self.assert_ops(after, oracle.ops(oracle.prefill(cfg, 5, oracle.DECOMPOSED)))
        g, bind = oracle.decode(cfg, oracle.EAGER, arrays=True), {"S": 7, "P": 6}
        after = self.rewritten("decompose", g, bind=bind, inputs=[self.inputs(g.bind(bind))])
        self.assertEqual(oracle.ops(after).total(), 46)
        self.assert_ops(after, oracle.ops(oracle.decode(cfg, oracle.DECOMPOSED)))
