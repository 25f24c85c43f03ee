"""Task 5: softmax(q kᵀ·scale + mask) v becomes one operation."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir import LayerCfg
from graph_ir.ops import causal_mask
from graph_ir.trace import exp, softmax

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase


def attention(x, scale=None, mask=None, divide=False):
    """Two heads of 3 from x (4, 6): the result, and its steps."""
    q = x.reshape(4, 2, 3).permute(1, 0, 2)
    k, v = exp(q), q * 0.5
    scores = q @ k.permute(0, 2, 1)
    if scale is not None:
        scores = scores / scale if divide else scores * scale
    if mask is not None:
        scores = scores + x.constant(mask, "mask")
    weights = softmax(scores)
    return weights @ v, weights, scores


class TestMatchAttention(GraphFusionCase):
    """`match_attention`."""

    def matched(self, fn, scale, causal):
        """Checks that one attention is found, and what its attributes are."""
        g = self.program(fn)
        after = self.rewritten("match_attention", g, count=1, exact=False)
        self.assert_ops(after, exp=1, mul=1, flash_attention=1)
        (node,) = (node for node in after if node.op == "flash_attention")
        self.assertAlmostEqual(node.attrs["scale"], scale, 12, "scale")
        self.assertEqual(node.attrs["causal"], causal, "causal")

    @weight(2)
    @number("5.1")
    @visibility("visible")
    def test_scale(self):
        """Found with a scale, on either side or as a divisor, and without one: the scale is kept"""
        self.matched(lambda p, x: attention(x)[0], 1.0, False)
        for scale in (0.25, 3.0):
            self.matched(lambda p, x, s=scale: attention(x, s)[0], scale, False)
            self.matched(lambda p, x, s=scale: attention(x, s, divide=True)[0], 1 / scale, False)

        def scale_first(p, x):
            q = x.reshape(4, 2, 3).permute(1, 0, 2)
            return softmax(0.5 * (q @ exp(q).permute(0, 2, 1))) @ (q * 0.5)

        self.matched(scale_first, 0.5, False)

    @weight(2)
    @number("5.2")
    @visibility("visible")
    def test_causal(self):
        """Found with the causal mask, (T, S) or with 1s before, on either side of the sum"""
        mask = causal_mask(4, 4)
        for each in (mask, mask[None], mask.reshape(1, 1, 4, 4)[0]):
            self.matched(lambda p, x, m=each: attention(x, 0.5, m)[0], 0.5, True)
        self.matched(lambda p, x: attention(x, None, mask)[0], 1.0, True)

        def mask_first(p, x):
            q = x.reshape(4, 2, 3).permute(1, 0, 2)
            scores = (q @ exp(q).permute(0, 2, 1)) * 0.5
            return softmax(x.constant(mask, "mask") + scores) @ (q * 0.5)

        self.matched(mask_first, 0.5, True)

    @weight(2)
    @number("5.3")
    @visibility("visible")
    def test_other_masks(self):
        """Any other mask is another computation: nothing is matched"""
        T = np.tri(4)
        for mask in (
            np.zeros((4, 4)),
            np.where(np.tri(4, k=-1) > 0, 0, -np.inf),
            np.where(np.tri(4, k=1) > 0, 0, -np.inf),
            np.where(T > 0, 0, -1e9),
            np.where(T.T > 0, 0, -np.inf),
            np.where(T > 0, 0.5, -np.inf),
            np.stack([causal_mask(4, 4), np.zeros((4, 4))]),
            self.numbers(4, 4),
            self.numbers(4, 1),
        ):
            g = self.program(lambda p, x, m=mask: attention(x, 0.5, m)[0])
            self.untouched("match_attention", g, exact=False)

    @weight(2)
    @number("5.4")
    @visibility("visible")
    def test_steps_needed(self):
        """Weights or scores that somebody else needs: nothing is matched"""
        mask = causal_mask(4, 4)
        for fn in (
            lambda p, x: attention(x, 0.5, mask)[:2],
            lambda p, x: (lambda o, w, s: (o, s))(*attention(x, 0.5, mask)),
            lambda p, x: (lambda o, w, s: (o, w.permute(0, 2, 1)))(*attention(x, 0.5)),
            lambda p, x: (lambda o, w, s: (o, s.max()))(*attention(x)),
            lambda p, x, s: softmax(x @ x.permute(1, 0) * s) @ x,
            lambda p, x: x.permute(1, 0) @ softmax(x @ x.permute(1, 0)),
            lambda p, x: exp(x @ x.permute(1, 0)) @ x,
        ):
            self.untouched("match_attention", self.program(fn), exact=False)

    @weight(1)
    @number("5.5")
    @visibility("visible")
    def test_layer(self):
        """One layer, grouped heads: found at prefill, causal, and at decode with any S"""
        cfg = LayerCfg(24, 6, 2, 4, 40)
        eager = oracle.Form(written_out=False, folded=False, flash=True)
        g = oracle.prefill(cfg, 5, oracle.EAGER, arrays=True)
        after = self.rewritten("match_attention", g, count=1, exact=False)
        self.assert_ops(after, oracle.ops(oracle.prefill(cfg, 5, eager)))
        g, bind = oracle.decode(cfg, oracle.EAGER, arrays=True), {"S": 7, "P": 6}
        after = self.rewritten("match_attention", g, count=1, exact=False, bind=bind)
        self.assert_ops(after, oracle.ops(oracle.decode(cfg, eager)))
