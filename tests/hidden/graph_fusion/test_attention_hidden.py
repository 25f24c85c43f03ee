"""Task 5: memory that changes, heads, T ≠ S, several layers, random programs."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir import LayerCfg
from graph_ir.ops import causal_mask
from graph_ir.trace import exp, kv_write, softmax

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase


class TestMatchAttentionHidden(GraphFusionCase):
    @weight(1)
    @number("5.6")
    @visibility("hidden")
    def test_memory(self):
        """A cache that is written between the products: nothing is matched; before: it is"""

        def between(p, x, cache):
            weights = softmax(x @ cache.permute(1, 0) * 0.5)
            return weights @ kv_write(cache, x, 0)

        def query_written(p, x, cache):
            weights = softmax(cache @ x.permute(1, 0))
            kv_write(cache, x, 0)
            return weights @ x, cache + 1

        def before(p, x, cache):
            keys = kv_write(cache, exp(x), 0)
            return softmax(x @ keys.permute(1, 0) * 0.5) @ keys

        for fn in (between, query_written):
            self.untouched("match_attention", self.program(fn), exact=False)
        after = self.rewritten("match_attention", self.program(before), count=1, exact=False)
        self.assert_ops(after, exp=1, kv_write=1, flash_attention=1)

    @weight(2)
    @number("5.7")
    @visibility("hidden")
    def test_shapes(self):
        """T ≠ S, where causal means the last query sees all; heads that are broadcast; kᵀ stored"""
        mask = causal_mask(3, 5)
        shapes = {"q": (2, 3, 4), "k": (2, 5, 4), "v": (2, 5, 6), "kt": (2, 4, 5), "one": (5, 6)}

        def masked(p, q, k, v):
            return softmax(q @ k.permute(0, 2, 1) * 0.5 + q.constant(mask, "mask")) @ v

        def stored(p, q, kt, v):
            return softmax(q @ kt / 2) @ v

        for fn in (masked, stored):
            g = self.program(fn, **shapes)
            after = self.rewritten("match_attention", g, count=1, exact=False)
            self.assert_ops(after, flash_attention=1)
        wrong = np.where(np.arange(5) <= np.arange(3)[:, None], 0.0, -np.inf)  # from the start

        def misaligned(p, q, k, v):
            return softmax(q @ k.permute(0, 2, 1) * 0.5 + q.constant(wrong, "mask")) @ v

        def broadcast(p, q, kt, one):
            return softmax(q @ kt) @ one

        for fn in (misaligned, broadcast):
            self.untouched("match_attention", self.program(fn, **shapes), exact=False)

    @weight(2)
    @number("5.8")
    @visibility("hidden")
    def test_random(self):
        """Two layers in one program; 20 random programs"""
        cfg = LayerCfg(16, 4, 2, 4, 8)
        g = oracle.prefill(cfg, 4, oracle.EAGER, arrays=True, seed=3)
        self.rewritten("match_attention", g, count=1, exact=False)

        def twice(p, q, k, v):
            o = softmax(q @ k.permute(0, 2, 1) * 0.5) @ v
            return softmax(o @ k.permute(0, 2, 1) * 0.25) @ o, o + 1

        shapes = {"q": (2, 5, 4), "k": (2, 5, 4), "v": (2, 5, 4)}
        g = self.program(twice, **shapes)
        after = self.rewritten("match_attention", g, count=2, exact=False)
        self.assert_ops(after, flash_attention=2, add=1)
        for sample in self.samples(20, steps=24, least=10, special=False):
            self.keeps("match_attention", sample, exact=False)
