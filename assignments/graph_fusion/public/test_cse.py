"""Task 2: what is computed twice is computed once."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir import LayerCfg
from graph_ir.trace import apply, bernoulli, cast, exp, kv_write, maximum, rms_norm

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase


class TestCse(GraphFusionCase):
    """`cse`."""

    def left(self, fn, expected, params=None, **shapes):
        """Checks how many operations cse leaves of a program, views left out."""
        g = self.program(fn, params, **shapes)
        found = oracle.ops(self.rewritten("cse", g)).total()
        if found != expected:
            self.fail(f"{found} operations are left, {expected} should be, of\n{g}")

    @weight(3)
    @number("2.1")
    @visibility("visible")
    def test_equal(self):
        """Equal operations on equal operands become one, along chains, through views"""
        self.left(lambda p, x: exp(x) * exp(x), 2)
        self.left(lambda p, x, b: (exp(x + b), exp(x + b) * 2), 3)
        self.left(lambda p, x: (x.permute(1, 0) * 3) / (x.permute(1, 0) * 3), 2)
        self.left(lambda p, x, y: (x @ p["w"]).sum() + (x @ p["w"]).sum() * y, 4, {"w": np.eye(6)})
        self.left(lambda p, x: rms_norm(x, p["w"]) - rms_norm(x, p["w"]), 2, {"w": np.ones(6)})

    @weight(2)
    @number("2.2")
    @visibility("visible")
    def test_either_order(self):
        """x + y and y + x are the same, x·y and y·x too; x − y, x / y and x < y are not"""
        self.left(lambda p, x, y: (x + y) - (y + x), 2)
        self.left(lambda p, x, y: (x * y) / (y * x), 2)
        self.left(lambda p, x, y: (x - y) * (y - x), 3)
        self.left(lambda p, x, y: (x / y) + (y / x), 3)
        self.left(lambda p, x: (2 * x) + (x * 2), 2)
        self.left(lambda p, x: maximum(x, 0.0) + maximum(0.0, x), 3)

    @weight(2)
    @number("2.3")
    @visibility("visible")
    def test_attributes(self):
        """Other attributes are other operations: ε, dtypes, shapes, axes; 0.0 is not −0.0"""
        w = {"w": np.ones(6)}
        self.left(lambda p, x: rms_norm(x, p["w"], 1e-5) + rms_norm(x, p["w"], 0.5), 3, w)
        self.left(lambda p, x: (cast(x, "f32"), cast(x, "bf16"), cast(x, "f32")), 2)
        self.left(lambda p, x: (x.reshape(6, 4) * 2, x.reshape(3, 8) * 2, x.reshape(6, 4) * 2), 2)
        self.left(lambda p, z: (exp(z.permute(1, 0, 2)), exp(z.permute(2, 0, 1))), 2, z=(3, 3, 3))
        self.left(lambda p, x: (x * 0.0, x * -0.0, x * 0.0), 2)
        g = self.program(lambda p, x: cast(x, "f32") + cast(cast(x, "bf16"), "f32"))
        self.rewritten("cse", g, rounding=True)

    @weight(2)
    @number("2.4")
    @visibility("visible")
    def test_random(self):
        """Two draws are two, however alike, and what is made of them; so are unused ones"""
        self.left(lambda p, x: bernoulli(x, 0.5) - bernoulli(x, 0.5), 3, x=(8, 16))
        self.left(lambda p, x: (x * bernoulli(x, 0.5), x * bernoulli(x, 0.5)), 4, x=(8, 16))

        def unused(p, x):
            bernoulli(x, 0.25)
            return x * bernoulli(x, 0.25) - x

        self.left(unused, 4, x=(8, 16))

    @weight(2)
    @number("2.5")
    @visibility("visible")
    def test_memory(self):
        """A read before a kv_write is not a read after it; what is written to stays its own"""

        def before_and_after(p, cache, b):
            early = cache * 2
            kv_write(cache, b.reshape(1, 6), 1)
            return early, cache * 2, cache * 2

        self.left(before_and_after, 3)

        def one_of_two(p, x, b):
            first, second = exp(x), exp(x)
            kv_write(first, b.reshape(1, 6), 0)
            return first, second

        self.left(one_of_two, 3)

        def written_twice(p, cache, b, y):
            kv_write(cache, b.reshape(1, 6), 0)
            kv_write(cache, y, 0)
            kv_write(cache, b.reshape(1, 6), 0)
            return cache * 1.5

        self.left(written_twice, 4)

    @weight(1)
    @number("2.6")
    @visibility("visible")
    def test_layer(self):
        """In a layer all 45 operations stay; of three norms of which two are equal, two are left"""
        cfg = LayerCfg(24, 6, 2, 4, 40)
        g = oracle.prefill(cfg, 5, oracle.DECOMPOSED, arrays=True)
        after = self.rewritten("cse", g, inputs=[self.inputs(g)])
        self.assert_ops(after, oracle.ops(g))

        def twice(p, x, y):
            one = [oracle.norm(z, p["w"], 1e-5, oracle.DECOMPOSED) for z in (x, y, x)]
            return apply("add", one[0], one[1]) * one[2]

        self.left(twice, 16, {"w": self.numbers(6)})
